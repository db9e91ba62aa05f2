#!/bin/sh
# Makes the files of testdata anew: pages of text, drawn as pictures. Needs Go and Ghostscript.
set -eu
cd "$(dirname "$0")/testdata"
go run ../../internal/makescan >pages.tmp.pdf
gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pnggray -r150 -dFirstPage=1 -dLastPage=1 -sOutputFile=notice.png pages.tmp.pdf
gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfimage8 -r150 -sCompression=Flate -sOutputFile=notice-scan.pdf pages.tmp.pdf
rm pages.tmp.pdf
