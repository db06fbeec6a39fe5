package imagegc

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A Consumer uses space of the image file system.
type Consumer struct {
	Name  string // "container layers", "logs of pods", "emptyDir volumes"
	Bytes uint64
}

func join(consumers []Consumer) string {
	parts := make([]string, len(consumers))
	for i, c := range consumers {
		parts[i] = c.Name + ": " + formatBytes(c.Bytes)
	}
	return strings.Join(parts, ", ")
}

// formatBytes formats a number of bytes with a binary unit.
func formatBytes(n uint64) string {
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

// consumers returns the consumers of the image file system: the images that are kept, by
// class, those of Config.Consumers, and the remaining usage.
func (m *Manager) consumers(ctx context.Context, report *Report) []Consumer {
	var consumers []Consumer
	var images uint64
	for _, class := range []Class{ClassInUse, ClassPinned, ClassKept, ClassTooYoung, ClassJustUsed} {
		var sum uint64
		for i := range report.Plan.Decisions {
			if d := &report.Plan.Decisions[i]; d.Class == class {
				sum += d.Record.Image.Size
			}
		}
		if sum > 0 {
			images += sum
			consumers = append(consumers, Consumer{"images " + string(class), sum})
		}
	}
	counted := images
	if m.cfg.Consumers != nil {
		others, err := m.cfg.Consumers(ctx)
		if err != nil {
			m.cfg.Logger.Warn("Failed to list all consumers of the image file system", "err", err)
		}
		for _, c := range others {
			if c.Bytes > 0 {
				counted += c.Bytes
				consumers = append(consumers, c)
			}
		}
	}
	if space, err := m.cfg.Space(ctx); err == nil && space.Capacity > space.Available {
		// Images share layers, so the sum may exceed the usage.
		if used := space.Capacity - space.Available; used > counted {
			consumers = append(consumers, Consumer{"other", used - counted})
		}
	}
	slices.SortStableFunc(consumers, func(a, b Consumer) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return consumers
}

// DirUsage returns the total size of the files below directories, for Config.Consumers.
// classes maps names of consumers to patterns of directories, in the syntax of [fs.Glob].
// Unreadable files and directories count as empty. A file that matches two classes counts for
// the first one by name.
func DirUsage(ctx context.Context, fsys fs.FS, classes map[string][]string) ([]Consumer, error) {
	var consumers []Consumer
	counted := map[string]bool{}
	names := make([]string, 0, len(classes))
	for name := range classes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c := Consumer{Name: name}
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
						return nil // unreadable directories are skipped
					}
					if info, err := d.Info(); err == nil {
						counted[path] = true
						c.Bytes += uint64(info.Size())
					}
					return nil
				})
			}
		}
		consumers = append(consumers, c)
	}
	return consumers, ctx.Err()
}
