package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Journal implements Node.ServiceLogs with the systemd journal, by journalctl. Without
// journalctl it returns an error that wraps errors.ErrUnsupported.
func Journal(ctx context.Context, q LogQuery, w io.Writer) error {
	program, err := exec.LookPath("journalctl")
	if err != nil {
		return fmt.Errorf("server: %w: %w", err, errors.ErrUnsupported)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, journalArgs(q)...)
	cmd.Stdout, cmd.Stderr = w, &limited{w: &stderr, left: 4 << 10}
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && stderr.Len() == 0 && ctx.Err() == nil {
		return nil // no entry matches the pattern
	}
	if err != nil {
		return fmt.Errorf("server: journalctl: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// journalArgs returns the arguments of journalctl for a query.
func journalArgs(q LogQuery) []string {
	args := []string{"--utc", "--no-pager", "--quiet", "--output=short-precise"}
	if !q.Since.IsZero() {
		args = append(args, "--since=@"+strconv.FormatInt(q.Since.Unix(), 10))
	}
	if !q.Until.IsZero() {
		args = append(args, "--until=@"+strconv.FormatInt(q.Until.Unix(), 10))
	}
	if q.Tail >= 0 {
		args = append(args, "--lines="+strconv.Itoa(q.Tail))
	}
	if q.Pattern != nil {
		args = append(args, "--grep="+journalPattern(q.Pattern), "--case-sensitive=true")
	}
	if q.Boot != nil {
		args = append(args, "--boot="+strconv.Itoa(*q.Boot))
	}
	for _, name := range q.Services {
		args = append(args, "--unit="+name)
	}
	return args
}

// journalPattern returns a pattern for journalctl, which uses PCRE2: patterns that Go
// matches in linear time, such as (a+)+$, can take exponential time. The prefix, which no
// Go pattern can contain, bounds the steps for each message; journalctl fails if they do
// not suffice.
func journalPattern(p *regexp.Regexp) string {
	return "(*LIMIT_MATCH=100000)(*LIMIT_DEPTH=10000)" + p.String()
}

// A limited writer discards what exceeds left bytes.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	_, err := l.w.Write(p[:n])
	return len(p), err
}
