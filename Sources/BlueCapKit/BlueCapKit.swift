// Who imports BlueCapKit speaks futures and Bluetooth's vocabulary without a further import.
@_exported public import Futures
@_exported public import GATT
