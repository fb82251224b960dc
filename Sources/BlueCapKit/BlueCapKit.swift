// Re-exports Futures, GATT and the profiles, so that programs need only `import BlueCapKit`.
@_exported public import BlueCapFutures
@_exported public import BlueCapGATT
@_exported public import BlueCapProfiles
