package imagegc

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A Holder is something that takes space on the file system of the images.
type Holder struct {
	What  string // "container layers", "logs of pods", "emptyDir volumes"
	Bytes uint64
}

// sentence names holders, the largest first.
func sentence(holders []Holder) string {
	parts := make([]string, len(holders))
	for i, h := range holders {
		parts[i] = h.What + ": " + bytes(h.Bytes)
	}
	return strings.Join(parts, ", ")
}

// bytes writes a number of bytes for people.
func bytes(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/unit, 0
	for ; f >= unit && i < 4; i++ {
		f /= unit
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[i])
}

// holders works out who has the space when no image is left that may go (F-32):
// images by why they stay, what Config.Holders says, and the rest.
func (m *Manager) holders(ctx context.Context, report *Report) []Holder {
	var holders []Holder
	var images uint64
	for _, verdict := range []Verdict{InUse, Pinned, Kept, TooYoung, JustUsed} {
		var sum uint64
		for i := range report.Plan.Decisions {
			if d := &report.Plan.Decisions[i]; d.Verdict == verdict {
				sum += d.Record.Image.Size
			}
		}
		if sum > 0 {
			images += sum
			holders = append(holders, Holder{"images " + string(verdict), sum})
		}
	}
	known := images
	if m.cfg.Holders != nil {
		others, err := m.cfg.Holders(ctx)
		if err != nil {
			m.cfg.Logger.Warn("who holds the space cannot be told in full", "err", err)
		}
		for _, h := range others {
			if h.Bytes > 0 {
				known += h.Bytes
				holders = append(holders, h)
			}
		}
	}
	if space, err := m.cfg.Space(ctx); err == nil && space.Capacity > space.Available {
		// Images share layers, so that what is known may be more than what is used.
		if used := space.Capacity - space.Available; used > known {
			holders = append(holders, Holder{"other", used - known})
		}
	}
	slices.SortStableFunc(holders, func(a, b Holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return holders
}

// DirUsage returns how many bytes the files below the directories take that match
// the patterns of a class, as [fs.Glob] has them: for Config.Holders. What cannot be
// read counts nothing. A file that matches two classes counts for the first by name.
func DirUsage(ctx context.Context, fsys fs.FS, classes map[string][]string) ([]Holder, error) {
	var holders []Holder
	counted := map[string]bool{}
	names := make([]string, 0, len(classes))
	for name := range classes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		h := Holder{What: name}
		for _, pattern := range classes[name] {
			roots, err := fs.Glob(fsys, pattern)
			if err != nil {
				return nil, fmt.Errorf("imagegc: class %q: pattern %q: %w", name, pattern, err)
			}
			for _, root := range roots {
				_ = fs.WalkDir(fsys, root, func(path string, d fs.DirEntry, err error) error {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					if err != nil || !d.Type().IsRegular() || counted[path] {
						return nil // a directory that cannot be read is passed over
					}
					if info, err := d.Info(); err == nil {
						counted[path] = true
						h.Bytes += uint64(info.Size())
					}
					return nil
				})
			}
		}
		holders = append(holders, h)
	}
	return holders, ctx.Err()
}
