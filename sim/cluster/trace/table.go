package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a file.
const (
	maxLine    = 1 << 20 // bytes
	maxRows    = 5_000_000
	maxSeconds = 1 << 30
	maxMiB     = 1 << 30
	maxMilli   = 1 << 40
)

// A row is one line of a file.
type row struct {
	line   int
	fields map[string]string // by column
	err    error             // the first invalid field
}

// read calls each with every row of a CSV file. Its columns must be among known, and include
// those that are required.
func read(r io.Reader, known, required []string, each func(*row) error) error {
	in := csv.NewReader(&lineLimiter{in: r})
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("trace: header: %w", noEOF(err))
	}
	columns := slices.Clone(header)
	for i, name := range columns {
		name = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("trace: line 1: unknown column %.40q", name)
		case slices.Contains(columns[:i], name):
			return fmt.Errorf("trace: line 1: column %s occurs twice", name)
		}
		columns[i] = name
	}
	for _, name := range required {
		if !slices.Contains(columns, name) {
			return fmt.Errorf("trace: line 1: column %s is missing", name)
		}
	}
	current := row{fields: make(map[string]string, len(columns))}
	for n := 0; ; n++ {
		record, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("trace: %w", err) // it names the line
		case n == maxRows:
			return fmt.Errorf("trace: more than %d lines", maxRows)
		}
		current.line, _ = in.FieldPos(0)
		current.err = nil
		for i, field := range record {
			current.fields[columns[i]] = strings.TrimSpace(field)
		}
		if err := each(&current); err != nil {
			return err
		}
		if current.err != nil {
			return current.err
		}
	}
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("file is empty")
	}
	return err
}

// fail stores the error of a field, unless another field failed before.
func (r *row) fail(column, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("trace: line %d: column %s: %s", r.line, column, fmt.Sprintf(format, args...))
	}
}

// integer returns a number between low and high; empty is zero.
func (r *row) integer(column string, low, high int64) int64 {
	text := r.fields[column]
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		r.fail(column, "%.40q is not an integer from %d to %d", text, low, high)
		return 0
	}
	return n
}

// mib returns an amount in MiB as bytes.
func (r *row) mib(column string) int64 { return r.integer(column, 0, maxMiB) << 20 }

// seconds returns a time in seconds, with up to 9 decimals; empty is zero.
func (r *row) seconds(column string) time.Duration {
	text := r.fields[column]
	if text == "" {
		return 0
	}
	d, ok := parseSeconds(text)
	if !ok {
		r.fail(column, "%.40q is not a number of seconds from 0 to %d", text, maxSeconds)
	}
	return d
}

func parseSeconds(text string) (d time.Duration, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > maxSeconds || len(fraction) > 9 {
		return 0, false
	}
	nanoseconds := uint64(0)
	if fraction != "" {
		if nanoseconds, err = strconv.ParseUint(fraction+strings.Repeat("0", 9-len(fraction)), 10, 63); err != nil {
			return 0, false
		}
	}
	return time.Duration(n)*time.Second + time.Duration(nanoseconds), true
}

// A lineLimiter returns an error if a line is longer than maxLine: a csv.Reader would keep all
// of it in memory.
type lineLimiter struct {
	in   io.Reader
	line int // bytes of the line so far
}

func (l *lineLimiter) Read(p []byte) (n int, err error) {
	n, err = l.in.Read(p)
	for _, b := range p[:n] {
		if l.line++; b == '\n' {
			l.line = 0
		}
		if l.line > maxLine {
			return 0, fmt.Errorf("line is longer than %d bytes", maxLine)
		}
	}
	return n, err
}
