#!/bin/sh
# A parser for `waymark`: reads pictures, and the pages of scans, with tesseract.
#
# Standard input is the document, WAYMARK_CONTENT_TYPE its type; standard output is its text, a form feed behind each page.
# The working folder is this call's own and is removed behind it. Needs tesseract-ocr and, for PDF documents, poppler-utils.
# OCR_LANGUAGES are those of tesseract, such as eng+deu; each needs its package (tesseract-ocr-deu).
set -eu

command -v tesseract >/dev/null || {
	echo "tesseract is not installed" >&2
	exit 69 # unavailable: no document is to blame
}
recognise() {
	tesseract "$1" stdout -l "${OCR_LANGUAGES:-eng}" -c page_separator= 2>>tesseract.log || {
		tail -n 1 tesseract.log >&2
		exit 65 # the document cannot be read
	}
	printf '\f'
}

cat >document
case $WAYMARK_CONTENT_TYPE in
application/pdf)
	command -v pdftoppm >/dev/null || {
		echo "pdftoppm (poppler-utils) is not installed" >&2
		exit 69
	}
	pdftoppm -r 200 -gray document page || {
		echo "the pages cannot be drawn" >&2
		exit 65
	}
	for page in page-*.pgm; do
		[ -e "$page" ] || continue
		recognise "$page"
	done
	;;
*)
	recognise document
	;;
esac
