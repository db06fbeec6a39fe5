package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// extension of the files.
const extension = ".kprec"

// A rotation writes the files of a recording. It belongs to the goroutine that writes.
type rotation struct {
	cfg    Config
	start  time.Time // of the recording
	number int       // of the current file
	file   *os.File  // nil: none is open
	writer *frameWriter
	opened time.Duration // since start
}

// due reports whether a frame at this time belongs into another file.
func (r *rotation) due(at time.Duration) bool {
	return r.file == nil || r.writer.written >= r.cfg.MaxBytes || at-r.opened >= r.cfg.MaxAge
}

// open creates the next file, with its header, and removes the oldest files.
func (r *rotation) open(at time.Duration) (err error) {
	if err := os.MkdirAll(r.cfg.Dir, 0o700); err != nil {
		return err
	}
	r.number++
	name := fmt.Sprintf("%s-%06d%s", r.start.UTC().Format("20060102T150405.000000000Z"), r.number, extension)
	if r.file, err = os.OpenFile(filepath.Join(r.cfg.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	r.opened = at
	if r.writer, err = newFrameWriter(r.file); err != nil {
		return err
	}
	wall := time.Now()
	if at == 0 {
		wall = r.start
	}
	header := Header{
		Start: r.start.UTC(), Wall: wall.UTC(), File: r.number, Node: r.cfg.Node, Versions: r.cfg.Versions, Configuration: r.cfg.Configuration,
	}
	return cmp.Or(r.writer.write(Frame{At: at, Header: &header}), r.removeOldest())
}

// removeOldest removes all but the last Config.MaxFiles files of the directory.
func (r *rotation) removeOldest() error {
	files, err := Files(r.cfg.Dir)
	if err != nil {
		return err
	}
	for _, path := range files[:max(0, len(files)-r.cfg.MaxFiles)] {
		if strings.HasSuffix(r.file.Name(), filepath.Base(path)) {
			continue // the clock was set back
		}
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// close writes the End and closes the file, if one is open.
func (r *rotation) close(at time.Duration, rotated bool) error {
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.writer.write(Frame{At: at, End: &End{Rotated: rotated}}), r.file.Sync())
	return errors.Join(err, r.abandon())
}

// abandon closes the file without an End, after an error.
func (r *rotation) abandon() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}
