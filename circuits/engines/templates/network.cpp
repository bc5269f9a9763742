{# The simulation loop. What Brian2's own does, with three differences: clocks are simultaneous when
   they agree to 1e-4 of a step (as in Brian2's Python loop) rather than to 1e-14 s, a clock that has
   ended fires no more, and the wall clock is read once per presentation rather than at every step. #}
{% macro cpp_file() %}
#include "network.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <new>

// Vectors of eight numbers are as long as a cache line. Arrays that begin with one are read and
// written a line at a time; at other places every access would be two.
void *operator new(std::size_t size)
{
    void *found = 0;
    if (posix_memalign(&found, 64, size))
        throw std::bad_alloc();
    return found;
}

void operator delete(void *which) noexcept
{
    std::free(which);
}

double Network::_last_run_time = 0.0;
double Network::_last_run_completed_fraction = 0.0;
bool Network::_globally_stopped = false;
bool Network::_globally_running = false;

Network::Network() : t(0.0) {}

void Network::clear()
{
    objects.clear();
    clocks.clear();
}

void Network::add(Clock *clock, codeobj_func func)
{
    size_t which = std::find(clocks.begin(), clocks.end(), clock) - clocks.begin();
    if (which == clocks.size())
        clocks.push_back(clock);
    objects.push_back(std::make_pair(which, func));
}

void Network::run(const double duration, report_func report, const double report_period)
{
    typedef std::chrono::steady_clock wall;
    const wall::time_point started = wall::now();
    const double t_start = t, t_end = t + duration;
    const size_t n = clocks.size();
    double next_report = report_period, elapsed = 0.0;

    // The objects of each clock alone, in order, for the steps on which no other clock is due.
    std::vector<std::vector<codeobj_func> > alone(n);
    for (size_t i = 0; i < objects.size(); i++)
        if (objects[i].second)
            alone[objects[i].first].push_back(objects[i].second);
    for (size_t c = 0; c < n; c++)
    {
        // A clock with a negative epsilon ends so much earlier.
        clocks[c]->set_interval(t_start, t_end + std::min(clocks[c]->epsilon, 0.0));
        clocks[c]->t[0] = clocks[c]->timestep[0] * clocks[c]->dt[0];
    }

    std::vector<char> due(n);
    _globally_running = true;
    _globally_stopped = false;
    while (n && !_globally_stopped)
    {
        size_t first = n, n_due = 0;
        for (size_t c = 0; c < n; c++)
            if (clocks[c]->running() && (first == n || clocks[c]->t[0] < clocks[first]->t[0]))
                first = c;
        if (first == n)
            break;
        t = clocks[first]->t[0];
        for (size_t c = 0; c < n; c++)
        {
            const double tolerance = 1e-4 * std::min(clocks[c]->dt[0], clocks[first]->dt[0]);
            due[c] = clocks[c]->running() && std::fabs(clocks[c]->t[0] - t) < tolerance;
            n_due += due[c];
        }
        if (n_due == 1)
        {
            // Nothing else moves until the next of the other clocks is due.
            Clock &clock = *clocks[first];
            const codeobj_func *const begin = alone[first].data();
            const codeobj_func *const end = begin + alone[first].size();
            double until = t_end;
            for (size_t c = 0; c < n; c++)
                if (c != first)
                    until = std::min(until, clocks[c]->t[0] - 1e-4 * std::min(clocks[c]->dt[0], clock.dt[0]));
            do
            {
                for (const codeobj_func *function = begin; function != end; function++)
                    (*function)();
                clock.tick();
                t = clock.t[0];
            } while (t <= until && clock.running() && !_globally_stopped);
            continue;
        }
        for (size_t i = 0; i < objects.size(); i++)
            if (due[objects[i].first] && objects[i].second)
                objects[i].second();
        for (size_t c = 0; c < n; c++)
            if (due[c])
                clocks[c]->tick();
        elapsed = std::chrono::duration<double>(wall::now() - started).count();
        if (report && elapsed > next_report)
        {
            report(elapsed, (t - t_start) / duration, t_start, duration);
            next_report = elapsed + report_period;
        }
    }
    _globally_running = false;
    if (!_globally_stopped)
        t = t_end;
    _last_run_time = std::chrono::duration<double>(wall::now() - started).count();
    _last_run_completed_fraction = duration > 0 ? (t - t_start) / duration : 1.0;
}
{% endmacro %}

{% macro h_file() %}
#ifndef _BRIAN_NETWORK_H
#define _BRIAN_NETWORK_H

#include <fstream>
#include <string>
#include <utility>
#include <vector>
#include "brianlib/clocks.h"

// Spikes on their way when a program ends, as lines of steps to go and synapse: the next program
// goes on with them.
template <class Queue> void save_spikes(const Queue &spikes, const std::string &file)
{
    std::ofstream out(file.c_str());
    const size_t n = spikes.queue.size();
    for (size_t i = 0; i < n; i++)
    {
        const std::vector<int32_t> &due = spikes.queue[(spikes.offset + i) % n];
        for (size_t j = 0; j < due.size(); j++)
            out << i << ' ' << due[j] << '\n';
    }
}

template <class Queue> void load_spikes(Queue &spikes, const std::string &file)
{
    std::ifstream in(file.c_str());
    size_t steps;
    int32_t synapse;
    while (in >> steps >> synapse)
        spikes.queue[(spikes.offset + steps) % spikes.queue.size()].push_back(synapse);
}

// A table that is written to its file row by row.
template <class T> class Column
{
    static const size_t room = 8192;
    std::ofstream file;
    std::vector<T> rows;

public:
    void open(const std::string &name)
    {
        file.open(name.c_str(), std::ios::binary);
        rows.reserve(room);
    }
    T *row(size_t n)
    {
        if (rows.size() + n > room)
            flush();
        rows.resize(rows.size() + n);
        return rows.data() + rows.size() - n;
    }
    void flush()
    {
        file.write(reinterpret_cast<const char *>(rows.data()), rows.size() * sizeof(T));
        rows.clear();
    }
    void close()
    {
        flush();
        file.close();
    }
};

typedef void (*codeobj_func)();
typedef void (*report_func)(const double, const double, const double, const double);

class Network
{
    std::vector<Clock *> clocks;
    std::vector<std::pair<size_t, codeobj_func> > objects;

public:
    double t;
    static double _last_run_time;
    static double _last_run_completed_fraction;
    static bool _globally_stopped;
    static bool _globally_running;

    Network();
    void clear();
    void add(Clock *clock, codeobj_func func);
    void run(const double duration, report_func report, const double report_period);
};

#endif
{% endmacro %}
