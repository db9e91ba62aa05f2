#!/bin/sh
# Makes the files of this folder anew. Needs Go, and qpdf and pandoc from Debian. The files differ in ids and salts each time.
set -eu
cd "$(dirname "$0")"
go run ./plain > plain.tmp.pdf
qpdf --encrypt reader owner 256 -- plain.tmp.pdf locked.pdf
qpdf --encrypt "" owner 256 -- plain.tmp.pdf owner-password.pdf
rm plain.tmp.pdf
for format in docx pptx epub rtf; do
	pandoc --standalone rivers.md -o "rivers.$format"
done
