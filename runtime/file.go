package runtime

import (
	"fmt"
	"io/fs"
	"log/slog"
)

// Content is the content of a volume of files. It must not be changed.
type Content struct {
	Files []File // sorted by path
}

// A File is a file of a volume. Its content may be secret: String, the formats of package fmt and log/slog
// show only its length.
type File struct {
	// Path is slash-separated and relative to the directory of the volume.
	Path string

	Data []byte

	// Mode contains the permission bits.
	Mode fs.FileMode

	// UID and GID are the owners. If nil, they are those that the backend chooses, as a kubelet's own.
	UID, GID *int64
}

// String returns path, mode and length.
func (f File) String() string { return fmt.Sprintf("%s (%v, %d bytes)", f.Path, f.Mode, len(f.Data)) }

// Format implements fmt.Formatter: it writes String for all verbs.
func (f File) Format(s fmt.State, _ rune) { fmt.Fprint(s, f.String()) }

// LogValue implements slog.LogValuer.
func (f File) LogValue() slog.Value { return slog.StringValue(f.String()) }
