import Foundation

/// The page, one document with its style and script.
enum PageDocument {
    private static let source = String(decoding: PackageResources.Page_html, as: UTF8.self)

    /// Returns the page. Style and script run because they have the number of this response; nothing else does.
    static func response() -> Response {
        let nonce = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        let number = Data(nonce).base64EncodedString()
        return Response(
            status: 200, type: "text/html; charset=utf-8", body: Data(source.replacing("{{nonce}}", with: number).utf8),
            fields: [
                "Content-Security-Policy: default-src 'none'; script-src 'nonce-\(number)'; "
                    + "style-src 'nonce-\(number)'; connect-src 'self'; img-src data:; base-uri 'none'; "
                    + "form-action 'none'; frame-ancestors 'none'"
            ])
    }
}
