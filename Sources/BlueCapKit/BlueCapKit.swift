// Re-exports Futures, GATT and the profiles, so that programs need only `import BlueCapKit`.
@_exported public import Futures
@_exported public import GATT
@_exported public import Profiles
