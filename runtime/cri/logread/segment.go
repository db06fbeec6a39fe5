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
	nameLayout = "YYYYMMDD-HHMMSS" // suffix of rotated files
)

// stamps returns the timestamps in the names of the rotated files of a log, oldest
// first, without duplicates.
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

// A segment is an open file of a log.
type segment struct {
	file  *os.File
	stamp string // empty if it was the live file when it was opened
	gz    bool
	size  int64     // when it was opened
	mtime time.Time // when it was opened
	known string    // the last stamp when it was opened
}

func (s *segment) close() { _ = s.file.Close() }

// reader returns a reader of the content of s.
func (s *segment) reader() (io.Reader, error) {
	if !s.gz {
		return io.NewSectionReader(s.file, 0, math.MaxInt64), nil
	}
	r, err := gzip.NewReader(io.NewSectionReader(s.file, 0, math.MaxInt64))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // an empty file is not a gzip file
	}
	return r, err
}

// open opens a regular file. It follows links, because some runtimes keep logs in
// another directory.
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

// is reports whether path is the file s, and whether it exists.
func (s *segment) is(path string) (same, there bool) {
	at, err := os.Stat(path)
	if err != nil {
		return false, !errors.Is(err, fs.ErrNotExist)
	}
	info, err := s.file.Stat()
	return err == nil && os.SameFile(at, info), true
}

const (
	maxOpen    = 100    // number of files of a log that are read, newest first
	maxEntries = 10_000 // limit for the directory of a log
)

// list opens all files of a log, in the order in which they were written, as of one
// moment: if one is renamed meanwhile, it starts again.
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

// look is one attempt of list. same reports that there was no rotation meanwhile.
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
		// The file may be compressed concurrently, which changes its name.
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
				r.cfg.Logger.Warn("Failed to open rotated log; skipping it", "path", name, "err", err)
				break
			}
		} // otherwise it was removed
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

// rotated returns the stamps of the rotated files of a log, oldest first.
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

// after returns the segments that were written after s. sure reports that none is
// missing between them and s.
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

// same reports whether two segments have the same content, although one may be
// compressed.
func same(a, b *segment) bool {
	if a.gz == b.gz {
		ai, err := a.file.Stat()
		bi, err2 := b.file.Stat()
		return err == nil && err2 == nil && os.SameFile(ai, bi)
	}
	if a.gz {
		a, b = b, a
	}
	// A compressed file has the same length and the same beginning, which contains
	// the time of the first line.
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
