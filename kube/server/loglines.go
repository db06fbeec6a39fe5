package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

// maxLine is the length in bytes at which a line is split.
const maxLine = 1 << 20

// logFile writes the lines of a file that match the query. For the last lines it reads the
// file twice instead of buffering them.
func (s *Server) logFile(ctx context.Context, w io.Writer, q LogQuery, name string) error {
	f, err := (plainFiles{s.cfg.Node.Logs}).Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var whole io.Reader = io.LimitReader(contextReader{ctx, f}, info.Size())
	skip := 0
	if q.Tail >= 0 {
		seeker, ok := f.(io.Seeker)
		if !ok {
			return fmt.Errorf("server: read %s: not seekable", name)
		}
		if err := eachLine(whole, q, func([]byte) error { skip++; return nil }); err != nil {
			return err
		}
		skip = max(skip-q.Tail, 0)
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return err
		}
		whole = io.LimitReader(contextReader{ctx, f}, info.Size())
	}
	return eachLine(whole, q, func(line []byte) error {
		if skip > 0 {
			skip--
			return nil
		}
		_, err := w.Write(line)
		return err
	})
}

// A contextReader returns the error of ctx when it is done: all of a file may be read for a
// pattern that matches no line.
type contextReader struct {
	ctx context.Context // of one request
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// eachLine calls do with each line that matches the pattern, including its newline.
func eachLine(r io.Reader, q LogQuery, do func(line []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine+1)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) {
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			return i + 1, data[:i+1], nil
		}
		if len(data) >= maxLine || atEOF && len(data) > 0 {
			return len(data), data, nil
		}
		return 0, nil, nil
	})
	for lines.Scan() {
		if q.Pattern != nil && !q.Pattern.Match(lines.Bytes()) {
			continue
		}
		if err := do(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
