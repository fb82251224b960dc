/// What a misspelt word may mean.
enum Suggestion {
    /// Returns ` Did you mean "scan"?` with the nearest of the names; empty if none is near.
    static func text(for word: String, among names: [String]) -> String {
        let wanted = Array(word.lowercased())
        let distances = names.map { (name: $0, distance: distance(wanted, Array($0.lowercased()))) }
        guard let nearest = distances.min(by: { $0.distance < $1.distance }),
            nearest.distance <= max(1, wanted.count / 3)
        else { return "" }
        return " Did you mean \"\(nearest.name)\"?"
    }

    /// The number of characters to insert, remove, replace, or exchange with the next one; one more for the beginning of
    /// the other text.
    private static func distance(_ one: [Character], _ other: [Character]) -> Int {
        var (before, last, row) = ([Int](), [Int](), Array(0...other.count))
        for (i, character) in one.enumerated() {
            (before, last, row) = (last, row, [i + 1])
            for (j, wanted) in other.enumerated() {
                var steps = min(last[j] + (character == wanted ? 0 : 1), last[j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, character == other[j - 1], one[i - 1] == wanted {
                    steps = min(steps, before[j - 1] + 1)
                }
                row.append(steps)
            }
        }
        return min(row[other.count], (row.dropFirst(3).min() ?? .max - 1) + 1)
    }
}
