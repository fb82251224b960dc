import FuturesBenchmarkAllocations
import Glibc

/// One way of doing a row's work.
struct Contender: Sendable {
    let name: String
    /// Does the work so many times.
    let work: @Sendable (Int) async -> Void
}

/// The same work done by several.
struct Row: Sendable {
    let title: String
    /// How many times one run does the work.
    let repetitions: Int
    /// How many operations are in the work, each of which the figures are for.
    var operations = 1
    let contenders: [Contender]
}

/// What one contender needed for one operation.
struct Figure {
    let name: String
    let nanoseconds: Double
    let allocations: Double
}

/// What the compiler must not optimise away ends up here. Unsafe without harm: one row runs at a time, and nobody reads it.
nonisolated(unsafe) var sink = 0

/// Processor time that all threads of the process have used: what the work costs, whoever else uses the machine.
func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Measures all contenders of a row in turn, `runs` times; the median of each counts.
func measure(_ row: Row, runs: Int) async -> [Figure] {
    let operations = Double(row.repetitions * row.operations)
    var times: [[Double]] = row.contenders.map { _ in [] }
    for contender in row.contenders { await contender.work(max(1, row.repetitions / 10)) }
    for _ in 0..<runs {
        for (index, contender) in row.contenders.enumerated() {
            let start = now()
            await contender.work(row.repetitions)
            times[index].append(Double(now() - start) / operations)
        }
    }
    var figures: [Figure] = []
    for (index, contender) in row.contenders.enumerated() {
        let before = allocations_so_far()
        allocations_count(true)
        await contender.work(row.repetitions)
        allocations_count(false)
        let allocations = Double(allocations_so_far() - before) / operations
        let median = times[index].sorted()[runs / 2]
        figures.append(Figure(name: contender.name, nanoseconds: median, allocations: allocations))
    }
    return figures
}

/// A line of a Markdown table: times, ratios to the first contender, allocations.
func report(_ row: Row, _ figures: [Figure], columns: [String]) -> String {
    let own = figures.first?.nanoseconds ?? 1
    let cells = columns.map { column -> String in
        guard let figure = figures.first(where: { $0.name == column }) else { return "–" }
        let ratio = figure.nanoseconds / own
        let times = ratio == 1 ? "" : " ×\(rounded(ratio, ratio < 10 ? 1 : 0))"
        return
            "\(duration(figure.nanoseconds))\(times) (\(rounded(figure.allocations, figure.allocations < 10 ? 1 : 0)))"
    }
    return "| \(row.title) | \(cells.joined(separator: " | ")) |"
}

func duration(_ nanoseconds: Double) -> String {
    if nanoseconds < 1_000 { return "\(rounded(nanoseconds, 0)) ns" }
    return "\(rounded(nanoseconds / 1_000, nanoseconds < 100_000 ? 2 : 0)) µs"
}

func rounded(_ value: Double, _ digits: Int) -> String {
    let scale = [1.0, 10, 100][digits]
    let number = (value * scale).rounded() / scale
    return number == number.rounded() ? String(Int(number)) : String(number)
}
