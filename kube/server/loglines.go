package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
)

// maxLine is how long a line of a log may be before it counts as several.
const maxLine = 1 << 20

// logFile writes the lines of a file that are asked for. To find the last ones it reads
// the file twice, instead of keeping them.
func (s *Server) logFile(ctx context.Context, w io.Writer, q LogQuery, name string) error {
	f, err := (plainFiles{s.cfg.NodeLogs}).Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var whole io.Reader = io.LimitReader(wanted{ctx, f}, info.Size())
	skip := 0
	if q.Tail >= 0 {
		back, can := f.(io.Seeker)
		if !can {
			return fmt.Errorf("server: %s can't be read twice", name)
		}
		if err := eachLine(whole, q, func([]byte) error { skip++; return nil }); err != nil {
			return err
		}
		skip = max(skip-q.Tail, 0)
		if _, err := back.Seek(0, io.SeekStart); err != nil {
			return err
		}
		whole = io.LimitReader(wanted{ctx, f}, info.Size())
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

// wanted is read as long as somebody wants it: all of a file may be read for a pattern
// that it has nothing of.
type wanted struct {
	ctx context.Context // of the one request
	io.Reader
}

func (r wanted) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// eachLine calls do with each line that is wanted, with what ends it.
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
