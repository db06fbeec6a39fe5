package logread

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

const (
	gzipSuffix = ".gz"
	nameLayout = "YYYYMMDD-HHMMSS" // of what a rotated file has after the log's name (lg-6)
)

// stamps returns what is between the name of a log and .gz in the names of its
// rotated files, the oldest first, each once.
func stamps(log string, names []string) (found []string) {
	for _, name := range names {
		stamp, ok := strings.CutPrefix(name, log+".")
		stamp = strings.TrimSuffix(stamp, gzipSuffix)
		if ok && isStampName(stamp) {
			found = append(found, stamp)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func isStampName(s string) bool {
	if len(s) != len(nameLayout) || s[8] != '-' {
		return false
	}
	return strings.Trim(s[:8], "0123456789") == "" && strings.Trim(s[9:], "0123456789") == ""
}

// A segment is one file of a log, open.
type segment struct {
	file  *os.File
	stamp string // empty: it had the log's name when it was opened
	gz    bool
	size  int64     // when it was opened
	mtime time.Time // then
	known string    // the last stamp that there was then
}

func (s *segment) close() { _ = s.file.Close() }

// reader returns what is in s, from its beginning.
func (s *segment) reader() (io.Reader, error) {
	if !s.gz {
		return io.NewSectionReader(s.file, 0, math.MaxInt64), nil
	}
	r, err := gzip.NewReader(io.NewSectionReader(s.file, 0, math.MaxInt64))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // it is empty, which no compressed file is
	}
	return r, err
}

// open opens a regular file. A link is followed, because some runtimes keep their
// logs in another directory.
func open(name, stamp string) (*segment, error) {
	f, err := untrusted.OpenFollow(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &segment{file: f, stamp: stamp, gz: strings.HasSuffix(name, gzipSuffix), size: info.Size(), mtime: info.ModTime()}, nil
}

// is reports whether path is the file that s is, and whether there is one.
func (s *segment) is(path string) (same, there bool) {
	at, err := os.Stat(path)
	if err != nil {
		return false, !errors.Is(err, fs.ErrNotExist)
	}
	info, err := s.file.Stat()
	return err == nil && os.SameFile(at, info), true
}

const (
	maxOpen    = 100    // files of a log that are read, the newest ones
	maxEntries = 10_000 // of the directory of a log; more is an error
)

// list opens all files of a log, in the order in which they were written, as they
// are at one moment: if one is renamed meanwhile, it looks again.
func (r *Reader) list(ctx context.Context, path string) (segments []*segment, err error) {
	for ctx.Err() == nil {
		segments, same, err := r.look(path)
		if same || err != nil {
			return segments, err
		}
		closeAll(segments)
	}
	return nil, ctx.Err()
}

func closeAll(segments []*segment) {
	for _, s := range segments {
		s.close()
	}
}

// look is one look of list. same tells that nothing was rotated meanwhile.
func (r *Reader) look(path string) (segments []*segment, same bool, err error) {
	live, err := open(path, "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	defer func() {
		if err != nil {
			closeAll(segments)
		}
	}()
	var names []string
	if !r.cfg.LiveOnly {
		if names, err = r.rotated(path); err != nil {
			closeAll(slices.DeleteFunc([]*segment{live}, func(s *segment) bool { return s == nil }))
			return nil, false, err
		}
	}
	for _, stamp := range names[max(len(names)-maxOpen, 0):] {
		// The file may be compressed at this moment; then it has the other name.
		for try := range 4 {
			name := path + "." + stamp
			if try%2 == 1 {
				name += gzipSuffix
			}
			s, err := open(name, stamp)
			if err == nil {
				segments = append(segments, s)
				break
			}
			if !errors.Is(err, fs.ErrNotExist) {
				r.cfg.Logger.Warn("a rotated log cannot be read", "path", name, "err", err)
				break
			}
		} // otherwise it was too old, and is gone
	}
	if live == nil {
		_, err := os.Stat(path)
		return segments, errors.Is(err, fs.ErrNotExist), nil
	}
	if len(names) > 0 {
		live.known = names[len(names)-1]
	}
	segments = append(segments, live)
	same, _ = live.is(path)
	return segments, same, nil
}

// rotated returns the stamps of the rotated files of a log.
func (r *Reader) rotated(path string) ([]string, error) {
	entries, err := untrusted.ReadDir(filepath.Dir(path), maxEntries)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return stamps(filepath.Base(path), names), nil
}

// after returns those of segments that were written after s, and whether it is sure
// that none is missing between them and s.
func after(s *segment, segments []*segment) (later []*segment, sure bool) {
	for i, c := range segments {
		if c.stamp != "" && (s.stamp != "" && c.stamp < s.stamp || s.stamp == "" && c.stamp <= s.known) {
			continue // older
		}
		if s.stamp != "" && c.stamp == s.stamp || same(s, c) {
			return segments[i+1:], true
		}
		later = append(later, c)
	}
	return later, false
}

// same reports whether two segments are one, though one may have been compressed
// since.
func same(a, b *segment) bool {
	if a.gz == b.gz {
		ai, err := a.file.Stat()
		bi, err2 := b.file.Stat()
		return err == nil && err2 == nil && os.SameFile(ai, bi)
	}
	if a.gz {
		a, b = b, a
	}
	// What is in a compressed file begins as the other one did, with the time of
	// the first line, and is as long.
	info, err := a.file.Stat()
	if err != nil {
		return false
	}
	var trailer [4]byte
	zipped, err := b.file.Stat()
	if err != nil || zipped.Size() < int64(len(trailer)) {
		return false
	}
	if _, err := b.file.ReadAt(trailer[:], zipped.Size()-int64(len(trailer))); err != nil || binary.LittleEndian.Uint32(trailer[:]) != uint32(info.Size()) {
		return false
	}
	r, err := b.reader()
	if err != nil {
		return false
	}
	plain, unzipped := make([]byte, min(info.Size(), 4<<10)), make([]byte, min(info.Size(), 4<<10))
	_, err = a.file.ReadAt(plain, 0)
	_, err2 := io.ReadFull(r, unzipped)
	return err == nil && err2 == nil && bytes.Equal(plain, unzipped)
}
