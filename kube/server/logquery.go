package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A LogQuery asks for what services of the node have logged, or for a file of theirs.
type LogQuery struct {
	// Services are names such as kubelet or containerd.service; File is a path below
	// NodeLogs. One of the two.
	Services []string
	File     string

	// Since and Until bound the time, both included. Zero: they don't.
	Since, Until time.Time

	// Tail is how many lines at the end are wanted; negative: all.
	Tail int

	// Pattern of lines that are wanted, a regular expression; nil: all are.
	Pattern *regexp.Regexp

	// Boot of the machine: 0 is this one, -1 the one before. Nil: all of them.
	Boot *int
}

// serviceName is what a unit of systemd can be called, without wildcards.
var serviceName = regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9_@.:\\-]*$`)

// ParseLogQuery reads the parameters of a request for /logs/: query, sinceTime,
// untilTime, tailLines, pattern and boot. The error says which one is wrong.
func ParseLogQuery(v url.Values) (q LogQuery, err error) {
	for _, name := range v["query"] {
		switch {
		case strings.ContainsAny(name, `/\`) && q.File != "":
			return q, errors.New("query: one file can be asked for")
		case strings.ContainsAny(name, `/\`):
			q.File = strings.TrimLeft(strings.ReplaceAll(name, `\`, "/"), "/")
			if !fs.ValidPath(q.File) || q.File == "." {
				return q, fmt.Errorf("query: %q is no file below the directory of logs", name)
			}
		case serviceName.MatchString(name):
			q.Services = append(q.Services, name)
		default:
			return q, fmt.Errorf("query: %q is neither a service nor a file, which has a slash", name)
		}
	}
	if (q.File == "") == (len(q.Services) == 0) {
		return q, errors.New("query: want services, or one file, which has a slash")
	}
	if q.Since, err = queryTime(v, "sinceTime"); err != nil {
		return q, err
	}
	if q.Until, err = queryTime(v, "untilTime"); err != nil {
		return q, err
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && q.Until.Before(q.Since) {
		return q, errors.New("untilTime is before sinceTime")
	}
	q.Tail = -1
	if text := v.Get("tailLines"); text != "" {
		if q.Tail, err = strconv.Atoi(text); err != nil || q.Tail < 0 {
			return q, fmt.Errorf("tailLines: %q is no number of lines", text)
		}
	}
	if text := v.Get("boot"); text != "" {
		boot, err := strconv.Atoi(text)
		if err != nil || boot > 0 {
			return q, fmt.Errorf("boot: %q is neither 0, the last one, nor a negative number", text)
		}
		q.Boot = &boot
	}
	if text := v.Get("pattern"); text != "" {
		if q.Pattern, err = regexp.Compile(text); err != nil {
			return q, fmt.Errorf("pattern: %w", err)
		}
	}
	return q, q.fits()
}

// fits refuses what files can't be asked.
func (q LogQuery) fits() error {
	if q.File != "" && (!q.Since.IsZero() || !q.Until.IsZero() || q.Boot != nil) {
		return errors.New("query: the lines of a file have no time that is known: sinceTime, untilTime and boot are for services")
	}
	return nil
}

func queryTime(v url.Values, name string) (time.Time, error) {
	text := v.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%s: %q is not as 2026-01-02T15:04:05Z", name, text)
	}
	return at, nil
}

// logQuery answers /logs/?query=.
func (s *Server) logQuery(w http.ResponseWriter, r *http.Request) {
	q, err := ParseLogQuery(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out := &began{ResponseWriter: w}
	err = errors.ErrUnsupported
	if q.File != "" {
		err = s.logFile(r.Context(), out, q, q.File)
	} else {
		if s.cfg.ServiceLogs != nil {
			err = s.cfg.ServiceLogs(r.Context(), q, out)
		}
		if errors.Is(err, errors.ErrUnsupported) && !out.did {
			err = s.serviceFiles(r.Context(), out, q)
		}
	}
	switch {
	case err == nil, r.Context().Err() != nil: // nobody listens any more
	case out.did:
		s.log.Warn("a log was cut short", "err", err)
	case errors.Is(err, fs.ErrNotExist):
		refuse(w, http.StatusNotFound, "there is no such log\n")
	case errors.Is(err, fs.ErrPermission):
		refuse(w, http.StatusForbidden, "this log is not to be had\n")
	case errors.Is(err, errors.ErrUnsupported):
		refuse(w, http.StatusBadRequest, err.Error()+"\n")
	default:
		s.fail(w, r, err)
	}
}

// serviceFiles writes the files of services that the journal has nothing of.
func (s *Server) serviceFiles(ctx context.Context, w *began, q LogQuery) error {
	if !q.Since.IsZero() || !q.Until.IsZero() || q.Boot != nil {
		return fmt.Errorf("this node has no journal, only files, whose lines have no time that is known: %w", errors.ErrUnsupported)
	}
	for _, name := range q.Services {
		places := []string{name, name + ".log", name + "/" + name + ".log"}
		at := slices.IndexFunc(places, func(file string) bool {
			info, err := fs.Stat(s.cfg.NodeLogs, file)
			return err == nil && info.Mode().IsRegular()
		})
		if at < 0 {
			return fs.ErrNotExist
		}
		if err := s.logFile(ctx, w, q, places[at]); err != nil {
			return err
		}
	}
	return nil
}

// A began knows whether an answer has begun.
type began struct {
	http.ResponseWriter
	did bool
}

func (b *began) Write(p []byte) (int, error) {
	b.did = true
	return b.ResponseWriter.Write(p)
}
