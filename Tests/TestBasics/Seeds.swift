/// The seeds that `make test` plays: the same in each run.
///
/// A seed that `make explore` has found to fail is added to ``found``, in the same commit as what it led to. A seed is never
/// removed and never exchanged because it fails: then the library or the test has a defect.
enum Seeds {
    /// With this seed each random test plays first.
    static let common: UInt64 = 2_384_084_351_909_160_659

    /// Further seeds by the name of the test, "Module.Class/test".
    static let found: [String: [UInt64]] = [
        // A scan failed because the adapter was busy, and a session of an earlier start stayed.
        "BlueZTests.DiscoveryMachineTests/testAnyOrderOfEventsEndsAtRestWithoutScans": [
            5_380_528_311_952_779_569, 9_196_814_993_484_336_118,
        ],
        // A bond of a refused passkey stayed, because the power or the daemon went before it was removed.
        "BlueCapKitTests.PairingSoakTests/testPairingsWithBlueZ566": [
            7_846_979_552_747_449_879, 1_595_034_219_108_695_936,
            // A device that was removed while its bond was verified was sought without a limit.
            17_474_384_894_471_185_547,
        ],
        "BlueCapKitTests.PairingSoakTests/testPairingsWithBlueZ572": [
            // A question that was refused became a bond at the next operation.
            1_521_030_080_331_888_103, 3_100_520_985_108_956_262,
            // The bond was removed while a request was open; a later refusal had no effect.
            1_730_371_594_157_732_425,
            // Another manager paired while the user was asked, and the operation was not repeated.
            9_365_823_039_666_552_861,
            // A manager asked although another one had called `Pair`.
            6_650_482_698_670_536_645,
            // A bond of another program, while the user was asked, was reported as that of the operation.
            11_964_810_282_476_630_951, 7_426_121_578_548_599_122,
            // The test's model: a policy that accepts incoming pairings, set later.
            15_440_390_303_866_533_561,
            // A subscription over the other transport was never settled, after a pairing that ended the link and failed.
            15_777_270_451_717_908_397,
        ],
        // A question that was refused became a bond at the next operation.
        "BlueCapKitTests.PairingSoakTests/testPairingsWithBlueZ582": [
            4_460_056_870_018_838_421,
            // A refusal was forgotten before BlueZ had reported the link.
            1_625_563_834_277_182_447,
            // A refused passkey of a pairing that BlueZ had begun, while `Pair` waited for its turn.
            15_659_988_371_299_630_583,
            // A bond of another program was reported as that of the operation, or of the removal.
            7_206_786_493_992_048_486, 4_303_401_410_356_220_433,
        ],
        "BlueCapKitTests.PairingSoakTests/testPairingsWithBlueZ587": [
            // A question that was refused became a bond at the next operation.
            10_508_544_929_016_632_615,
            // A bond of a refused passkey stayed, because the power or the daemon went before it was removed.
            7_342_780_917_598_048_234,
            // The same after a cancelled `Pair` of this process.
            7_426_940_382_482_468_766,
            // A passkey was displayed to replace the keys of a bond, and no property changed at its end.
            4_434_519_438_624_506_863,
            // A refused request of a pairing that BlueZ had begun, while `Pair` waited for its end.
            6_810_234_226_358_349_907,
            // The test's model: a policy that was set while an operation waited.
            8_073_955_751_791_961_192,
            // A bond without consent, of one of these causes.
            6_211_124_760_978_248_102,
            // The test's model: another manager that accepts incoming pairings.
            12_304_686_472_860_490_062,
            // The test's model: slow replies beside a daemon that ends.
            8_850_531_855_816_858_933,
        ],
        // A test of this list.
        "FuturesTests.SeedProbe/testNumbers": [1, 2],
    ]

    static func of(_ test: String) -> [UInt64] { [common] + found[test, default: []] }
}
