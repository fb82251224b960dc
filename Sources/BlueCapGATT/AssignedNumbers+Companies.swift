extension AssignedNumbers {
    /// Companies by the identifier at the start of their manufacturer data.
    static let companies = names(
        """
        0000 Ericsson
        0001 Nokia
        0002 Intel
        0003 IBM
        0004 Toshiba
        0006 Microsoft
        0008 Motorola
        0009 Infineon
        000D Texas Instruments
        000F Broadcom
        0013 Atmel
        001D Qualcomm
        0025 NXP
        0036 Renesas
        003A Panasonic
        003F Bluetooth SIG
        0040 Seiko Epson
        0046 MediaTek
        0048 Marvell
        004C Apple
        0055 Plantronics
        0056 Sony Ericsson
        0057 Harman
        0059 Nordic Semiconductor
        005D Realtek
        0065 HP
        0067 GN Netcom
        006B Polar
        0075 Samsung
        0077 Laird
        0078 Nike
        0082 Sennheiser
        0087 Garmin
        008C Gimbal
        009E Bose
        009F Suunto
        00C3 adidas
        00C4 LG Electronics
        00CC Beats
        00CD Microchip
        00D0 Dexcom
        00D1 Polar
        00D2 Dialog Semiconductor
        00D7 Qualcomm
        00DC Procter & Gamble
        00E0 Google
        0100 TomTom
        0103 Bang & Olufsen
        0118 Radius Networks
        012D Sony
        0131 Cypress
        0133 Blue Maestro
        013C Murata
        015D Estimote
        0170 Roche Diabetes Care
        0171 Amazon
        018E Fitbit
        01AB Facebook
        01B5 Nest
        01D1 August Home
        01DA Logitech
        01DD Philips
        01F1 Zebra
        01F9 Medtronic
        01FC Wahoo Fitness
        01FD Kontakt.io
        020E Omron Healthcare
        0211 Telink
        022B Tesla
        02A6 Bosch
        02C5 Lenovo
        02D5 Omron
        02E1 Victron Energy
        02E5 Espressif
        02ED HTC
        02EE Citizen
        02F2 GoPro
        02FF Silicon Laboratories
        0381 Sharp
        038F Xiaomi
        0397 LEGO
        03FF Withings
        041E Dell
        0499 Ruuvi
        0553 Nintendo
        055D Valve
        05A7 Sonos
        05F1 Linux Foundation
        0600 iRobot
        060F Signify
        0611 Beurer
        0639 Minew
        0662 Particle
        067C Tile
        072F OnePlus
        079A OPPO
        07C9 Skullcandy
        07D0 Tuya
        0819 Hunter Douglas
        0837 vivo
        0870 Wyze
        08AA DJI
        0933 SRAM
        FFFF (tests)
        """)
}
