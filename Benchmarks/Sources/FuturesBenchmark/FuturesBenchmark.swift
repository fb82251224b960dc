import Glibc

/// Measures futures side by side, in one run, and prints the table of Benchmarks/Results.md.
@main
struct FuturesBenchmark {
    static let rows = [
        Row(
            title: "promise with one handler", repetitions: 200_000,
            contenders: [Ours.promise, NIO.promise, Combine.promise, Async.promise]),
        Row(
            title: "`map` × 10", repetitions: 20_000,
            contenders: [Ours.map, NIO.map, Combine.map, Async.map]),
        Row(
            title: "`flatMap` × 10", repetitions: 20_000,
            contenders: [Ours.flatMap, NIO.flatMap, Combine.flatMap, Async.flatMap]),
        Row(
            title: "stream of 1 000 000 through `map` and `withFilter`, an element", repetitions: 1_000_000,
            contenders: [Ours.stream, Combine.stream, Async.stream]),
        Row(
            title: "the same, keeping the latest 4 096 at each stage", repetitions: 1_000_000,
            contenders: [Contender(name: Ours.name, work: Ours.keepingStream.work)]),
        Row(
            title: "`sequence` of 1 000", repetitions: 200,
            contenders: [Ours.sequence, NIO.sequence, Combine.sequence, Async.sequence]),
    ]

    static func main() async {
        let only = CommandLine.arguments.dropFirst(2).first
        let runs = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 11
        let columns = [Ours.name, NIO.name, Combine.name, Async.name]
        print("Processor time, median of \(runs) runs; × the first column; in parentheses allocations per operation.\n")
        print("| | \(columns.joined(separator: " | ")) |")
        print("|---|\(columns.map { _ in "---|" }.joined())")
        for row in rows where only.map(row.title.hasPrefix) ?? true {
            print(report(row, await measure(row, runs: runs), columns: columns))
            fflush(nil)
        }
    }
}
