// Package codecs gives every internal record and every table row the same envelope: a magic byte, the format of the
// payload, the write time and a checksum. Decoding never panics: what cannot be read comes back as a typed error with the bytes
// and the reason.
//
// # The envelope
//
//	offset  bytes  what
//	0       1      magic, 0xFB: no UTF-8 text begins with it, so a stray JSON value is told apart at once
//	1       1      format of the payload, 1 to 255
//	2       8      write time, Unix milliseconds, big-endian
//	10      4      CRC-32C of bytes 0 to 9 and of the payload, big-endian
//	14      …      payload
//
// The layout of the header is fixed for good; only the payload has formats. The checksum is there because a protobuf payload
// that is cut at the border of a field still decodes, into something else.
//
// # Changing a format
//
// A change that a reader of the release before would misunderstand raises the format. It takes two releases: the first one
// reads the new format and still writes the old one (New with the old format, Reading with the new one), the second one writes
// it. A pod that meets a format above those it reads gets stage.ErrNewerFormat and holds; it never makes a dead letter of it.
package codecs
