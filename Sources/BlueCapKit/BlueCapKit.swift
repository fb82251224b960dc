// A program for BlueCap imports BlueCapKit alone, and uses futures, Core Bluetooth's values and the ready-made profiles.
@_exported public import Futures
@_exported public import GATT
@_exported public import Profiles
