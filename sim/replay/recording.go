package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/kubeparts/kubeparts/sim/record"
)

// Limits of a recording in memory.
const (
	maxFrames = 8 << 20
	maxBytes  = 1 << 30 // of decoded frames, without messages that repeat an earlier one
)

// A Recording is a recording in memory. [Open] and [Read] return it. It is not changed by replays, which
// may be concurrent.
type Recording struct {
	// Header is the header of the first file.
	Header record.Header

	// Length is the time of the last frame, since Header.Start.
	Length time.Duration

	// Damage is why the recording ends at Length: a *record.DamageError, [ErrDropped], or nil if
	// it is complete.
	Damage error

	frames []record.Frame
}

// Errors of recordings.
var (
	// ErrDropped reports that the recorder dropped frames. A replay ends before them.
	ErrDropped = errors.New("the recorder dropped frames")

	// ErrIncomplete reports that the first file of the recording is missing, which contains the
	// start of the agent.
	ErrIncomplete = errors.New("the recording has no beginning")
)

// Read reads the frames of one recording, from [record.Read] or [record.ReadFiles]. A damaged
// recording is read up to the damage, which is in Recording.Damage. It returns an error if there is no
// header, if the frames are of two recordings, or if they are not the first ones; then
// errors.Is(err, ErrIncomplete) is true.
func Read(frames iter.Seq2[record.Frame, error]) (*Recording, error) {
	r, size := &Recording{}, 0
	for f, err := range frames {
		if err != nil {
			if d, ok := errors.AsType[*record.DamageError](err); ok && len(r.frames) > 0 {
				r.Damage = d
				break
			}
			return nil, fmt.Errorf("replay: %w", err)
		}
		if f.Dropped != nil {
			r.Damage = fmt.Errorf("%w: %d at %v: %s", ErrDropped, f.Dropped.Count, f.At, f.Dropped.Reason)
			break
		}
		if err := r.add(f); err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		if size += sizeOf(f); size > maxBytes || len(r.frames) > maxFrames {
			return nil, errors.New("replay: the recording is too large")
		}
	}
	if len(r.frames) == 0 {
		return nil, errors.New("replay: the recording is empty")
	}
	return r, nil
}

// add appends a frame after it has checked its time.
func (r *Recording) add(f record.Frame) error {
	switch {
	case len(r.frames) == 0 && f.Header == nil:
		return errors.New("the first frame is not a header")
	case len(r.frames) == 0 && f.Header.File > 1:
		return fmt.Errorf("%w: it begins with file %d", ErrIncomplete, f.Header.File)
	case len(r.frames) == 0 && (f.Header.Start.Year() < 2000 || f.Header.Start.Year() > 2200):
		return fmt.Errorf("recorded at %v", f.Header.Start)
	case len(r.frames) == 0:
		r.Header = *f.Header
	case f.Header != nil && !f.Header.Start.Equal(r.Header.Start):
		return fmt.Errorf("the files are of two recordings, which began at %v and %v", r.Header.Start, f.Header.Start)
	}
	if f.Pods != nil && f.Pods.Source == "" || f.Agent != nil && slices.Contains(f.Agent.Sources, "") {
		return fmt.Errorf("frame %d: a source without a name", len(r.frames))
	}
	const longest = 50 * 365 * 24 * time.Hour
	if f.At < 0 || f.At > longest || took(f) < 0 || took(f) > longest {
		return fmt.Errorf("frame %d: invalid time %v, duration %v", len(r.frames), f.At, took(f))
	}
	r.frames, r.Length = append(r.frames, f), max(r.Length, f.At)
	return nil
}

// took returns the duration of the operation of a frame; zero if it has none.
func took(f record.Frame) time.Duration {
	switch {
	case f.Call != nil:
		return f.Call.Took
	case f.Probe != nil:
		return f.Probe.Took
	case f.Operation != nil:
		return f.Operation.Took
	case f.Status != nil:
		return f.Status.Took
	case f.Pause != nil:
		return f.Pause.Took
	}
	return 0
}

// Open reads a file, or the last recording in a directory. Errors are those of [Read] and of the file
// system.
func Open(path string) (*Recording, error) {
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = record.Files(path); err != nil {
			return nil, err
		}
		if files = last(files); len(files) == 0 {
			return nil, fmt.Errorf("replay: %s: %w", path, fs.ErrNotExist)
		}
	}
	return Read(record.ReadFiles(files...))
}

// last returns the files of the recording that started last.
func last(files []string) []string {
	starts := map[string]time.Time{}
	for _, file := range files {
		for f, err := range record.ReadFiles(file) {
			if err == nil {
				starts[file] = f.Header.Start
			}
			break
		}
	}
	if len(starts) == 0 {
		return files // Read reports why
	}
	newest := slices.MaxFunc(files, func(a, b string) int { return cmp.Compare(starts[a].UnixNano(), starts[b].UnixNano()) })
	return slices.DeleteFunc(files, func(file string) bool { return !starts[file].Equal(starts[newest]) })
}
