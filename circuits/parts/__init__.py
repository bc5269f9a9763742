"""What a circuit can have besides the paper's two layers."""

from circuits.parts.part import Part, Parts, checked_parts, part_from

__all__ = ["Part", "Parts", "checked_parts", "part_from"]
