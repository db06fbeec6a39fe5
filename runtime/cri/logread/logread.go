package logread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"
)

// Config configures a [Reader]. The zero value will do.
type Config struct {
	// LiveOnly reads the file that is written now, and none that was rotated, as
	// the kubelet does (la-14).
	LiveOnly bool

	// PhysicalLines counts the pieces of a line that was too long for the runtime
	// as lines, as the kubelet does (la-10): for Tail and for Since.
	PhysicalLines bool

	// Recheck is how often it is looked at a log that is followed, whatever the
	// file system tells, and how often it is asked whether the container runs.
	// Zero: 1 second (la-12).
	Recheck time.Duration

	// Settle is how long nobody must have written to a file that was rotated before a
	// follow leaves it: a runtime that opens a log anew may finish a line in the old
	// file. Zero: 100 milliseconds.
	Settle time.Duration

	// Watch tells of changes in a directory: it calls changed, which does not
	// block, until stop is called, which waits for that. An error, and there is
	// Recheck alone. Nil: the file system is listened to.
	Watch func(dir string, changed func()) (stop func(), err error)

	// Hooks are told of what was read.
	Hooks Hooks

	// Logger, nil discards.
	Logger *slog.Logger
}

// Hooks are told what a Reader does. Any may be nil; they must not block.
type Hooks struct {
	// Read is called when a reading has ended.
	Read func(ReadInfo)
}

// A ReadInfo tells of one reading.
type ReadInfo struct {
	Path    string
	Follow  bool
	Bytes   int64         // written
	Lines   int64         // looked at, wanted or not
	Skipped int64         // lines of no known format
	Gaps    int           // how often something was missing
	Took    time.Duration //
	Err     error         // nil: all is well
}

// A Request says what is wanted of a log.
type Request struct {
	// Path is where the runtime writes the log (runtime.LogReader). The files that
	// were rotated from it are beside it. Required.
	Path string

	// Stream is which lines: All, the zero value, or those of one.
	Stream Stream

	// Since leaves out lines that are older. Zero: none (la-7).
	Since time.Time

	// Tail is how many lines from the end; those that Since leaves out count
	// (la-11). Of lines that somebody asks for of one stream only, those of that
	// stream count. Nil: all.
	Tail *int64

	// Limit is how many bytes are written at most. Nil: any number (la-9).
	Limit *int64

	// Timestamps puts the time before each line (la-8).
	Timestamps bool

	// Follow goes on with what will be written, until the container has ended.
	Follow bool

	// Running tells whether the container can still write. It is asked while a
	// log is followed, at the end of what there is. An error ends the reading;
	// a runtime that does not answer (la-15) is not one. Nil: it always can.
	Running func(context.Context) (bool, error)

	// Gap is told where something is missing between what was written and what
	// follows, with ErrRemoved, ErrDamaged or ErrTruncated. What it prints comes
	// at that place. Nil: nobody is.
	Gap func(error)
}

// Why something is missing from what was read.
var (
	// ErrRemoved: the log was rotated so often that files were, or may have been,
	// removed before they were read.
	ErrRemoved = errors.New("rotated files were removed before they were read")

	// ErrDamaged: a compressed file is not whole.
	ErrDamaged = errors.New("a compressed file is damaged")

	// ErrTruncated: somebody made the file shorter while it was read. It is read
	// from its new beginning.
	ErrTruncated = errors.New("the file was truncated while it was read")
)

// A Reader reads logs. It can be used from many goroutines.
type Reader struct {
	cfg Config
}

// New returns a Reader, or an error that says what is wrong with cfg. It starts
// nothing.
func New(cfg Config) (*Reader, error) {
	if cfg.Recheck < 0 || cfg.Settle < 0 {
		return nil, fmt.Errorf("logread: out of bounds: Recheck %v, Settle %v", cfg.Recheck, cfg.Settle)
	}
	if cfg.Settle == 0 {
		cfg.Settle = 100 * time.Millisecond
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = time.Second
	}
	if cfg.Watch == nil {
		cfg.Watch = listen
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Reader{cfg: cfg}, nil
}

func (q *Request) check() error {
	switch {
	case q.Path == "":
		return errors.New("Request.Path is empty")
	case q.Stream > Stderr:
		return fmt.Errorf("Request.Stream is %v", q.Stream)
	case q.Tail != nil && *q.Tail < 0:
		return fmt.Errorf("Request.Tail is %d", *q.Tail)
	case q.Limit != nil && *q.Limit < 0:
		return fmt.Errorf("Request.Limit is %d", *q.Limit)
	}
	return nil
}

// Read writes to w what req asks for: all files of the log are one stream. It
// returns nil at the end of that, ctx's error if ctx ends first, one that is
// fs.ErrNotExist if there is no such log, and w's error if w fails. w gets many
// lines at once where there are many, and what there is before Read waits.
func (r *Reader) Read(ctx context.Context, req Request, w io.Writer) error {
	began := time.Now()
	if err := req.check(); err != nil {
		return fmt.Errorf("logread: %w", err)
	}
	if real, err := filepath.EvalSymlinks(req.Path); err == nil {
		req.Path = real // rotated files are beside the file itself
	}
	rd := reading{r: r, req: req, out: newPrinter(w, req, r.cfg.PhysicalLines)}
	err := rd.run(ctx)
	if errors.Is(err, errLimit) {
		err = nil
	}
	if err == nil && rd.out.lines == 0 && rd.out.skipped > 0 {
		err = fmt.Errorf("%s: %w: it begins with %q", req.Path, ErrFormat, rd.out.bad)
	}
	if rd.out.skipped > 0 {
		r.cfg.Logger.Warn("lines of a log were skipped", "path", req.Path, "lines", rd.out.skipped, "first", string(rd.out.bad))
	}
	if err != nil {
		err = fmt.Errorf("logread: %w", err)
	}
	if hook := r.cfg.Hooks.Read; hook != nil {
		hook(ReadInfo{
			Path: req.Path, Follow: req.Follow, Bytes: rd.out.written, Lines: rd.out.lines, Skipped: rd.out.skipped,
			Gaps: rd.gaps, Took: time.Since(began), Err: err,
		})
	}
	return err
}

// A reading is one call of Read.
type reading struct {
	r    *Reader
	req  Request
	out  *printer
	gaps int
}

func (d *reading) run(ctx context.Context) error {
	var f *follower
	if d.req.Follow { // it listens before it looks, so that nothing changes between
		f = d.r.newFollower(d.req)
		defer f.stop()
	}
	segments, err := d.r.list(ctx, d.req.Path)
	if err != nil {
		return err
	}
	defer func() { closeAll(segments) }()
	if len(segments) == 0 {
		return fmt.Errorf("%s: %w", d.req.Path, fs.ErrNotExist)
	}
	var from start
	if d.req.Tail != nil {
		if from, err = locate(ctx, segments, *d.req.Tail, d.req.Stream, d.r.cfg.PhysicalLines, d.req.Follow); err != nil {
			return err
		}
	}
	for i, s := range segments {
		last := i == len(segments)-1
		if i < from.first() || !last && d.old(s) {
			continue
		}
		c, err := d.cursor(s, from.in(i), last && !d.req.Follow)
		if err != nil {
			return err
		}
		if err := c.copy(ctx); err != nil {
			return err
		}
		if last && d.req.Follow {
			closeAll(segments[:i])
			segments = nil
			return d.follow(ctx, f, c)
		}
		if err := c.finish(!last); err != nil {
			return err
		}
	}
	return d.out.flush()
}

// slack is how much later than a line's time its file may have been written to,
// before since.
const slack = time.Minute

// old reports whether nothing in a file can be new enough.
func (d *reading) old(s *segment) bool {
	return !d.req.Since.IsZero() && s.mtime.Before(d.req.Since.Add(-slack))
}

// gap tells that something is missing here.
func (d *reading) gap(err error) error {
	d.gaps++
	d.r.cfg.Logger.Warn("something of a log is missing", "path", d.req.Path, "err", err)
	if d.req.Gap == nil {
		return nil
	}
	err2 := d.out.flush()
	d.req.Gap(err)
	return err2
}
