package pdf

import (
	"context"
	"errors"
	"fmt"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// Bounds of the attachments of a document; those beyond are left out with a warning.
const (
	maxFiles     = 100
	maxFileBytes = 64 << 20 // of all together
)

// readFiles reads the attachments that are missing.
func (d *document) readFiles(ctx context.Context, p pdfium.Pdfium, doc references.FPDF_DOCUMENT) error {
	count, err := p.FPDFDoc_GetAttachmentCount(&requests.FPDFDoc_GetAttachmentCount{Document: doc})
	if err != nil {
		return fmt.Errorf("count the attachments: %w", err)
	}
	size := 0
	for _, f := range d.files {
		size += len(f.Content)
	}
	n := min(count.AttachmentCount, maxFiles)
	for d.tried < n {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		index := d.tried
		d.tried++ // before it can break the instance
		f, err := readFile(p, doc, index)
		switch {
		case errors.Is(err, errNoFile), errors.Is(err, pdfiumerrors.ErrUnknown), errors.Is(err, pdfiumerrors.ErrSuccess):
			d.lostFiles++
			continue
		case err != nil:
			return err
		}
		if size += len(f.Content); size > maxFileBytes {
			d.lostFiles += n - index
			d.tried = n
			break
		}
		d.files = append(d.files, f)
	}
	if n < count.AttachmentCount && d.tried == n {
		d.lostFiles += count.AttachmentCount - n
		d.tried++ // so that they are counted once
	}
	return nil
}

var errNoFile = errors.New("there is no content")

func readFile(p pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int) (Attachment, error) {
	got, err := p.FPDFDoc_GetAttachment(&requests.FPDFDoc_GetAttachment{Document: doc, Index: index})
	if err != nil {
		return Attachment{}, fmt.Errorf("attachment %d: %w", index+1, err)
	}
	name, err := p.FPDFAttachment_GetName(&requests.FPDFAttachment_GetName{Attachment: got.Attachment})
	if err != nil {
		return Attachment{}, fmt.Errorf("the name of attachment %d: %w", index+1, err)
	}
	file, err := p.FPDFAttachment_GetFile(&requests.FPDFAttachment_GetFile{Attachment: got.Attachment})
	if err != nil {
		return Attachment{}, fmt.Errorf("attachment %d: %w", index+1, err)
	}
	if len(file.Contents) == 0 {
		return Attachment{}, errNoFile
	}
	return Attachment{Name: clean(name.Name), Content: file.Contents}, nil
}
