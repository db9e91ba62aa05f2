package rtf

import "strconv"

// codepage names the charset of a code page of Windows.
func codepage(n int) string {
	switch n {
	case 932:
		return "shift_jis"
	case 936:
		return "gbk"
	case 949:
		return "euc-kr"
	case 950:
		return "big5"
	case 866:
		return "ibm866"
	case 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258:
		return "windows-" + strconv.Itoa(n)
	case 10000:
		return "macintosh"
	case 10007:
		return "x-mac-cyrillic"
	case 65001:
		return "utf-8"
	}
	return "windows-1252"
}

// fontCharset names the charset of a font; "" for that of the document.
func fontCharset(n int) string {
	switch n {
	case 77:
		return "macintosh"
	case 128:
		return "shift_jis"
	case 129:
		return "euc-kr"
	case 134:
		return "gbk"
	case 136:
		return "big5"
	case 161:
		return "windows-1253"
	case 162:
		return "windows-1254"
	case 163:
		return "windows-1258"
	case 177:
		return "windows-1255"
	case 178:
		return "windows-1256"
	case 186:
		return "windows-1257"
	case 204:
		return "windows-1251"
	case 222:
		return "windows-874"
	case 238:
		return "windows-1250"
	}
	return ""
}
