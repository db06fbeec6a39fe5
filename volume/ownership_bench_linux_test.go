package volume_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serialOwn is the simple way: one entry after the other, each changed
// unconditionally.
func serialOwn(b *testing.B, dir string, group int) {
	require.NoError(b, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, group); err != nil {
			return err
		}
		mode := info.Mode() | 0o660
		if d.IsDir() {
			mode |= fs.ModeSetgid | 0o110
		}
		return os.Chmod(path, mode)
	}))
}

// fsGroup on 100,000 files: all need a change, and none, compared with the simple walk
// over the same files in the same run.
func BenchmarkOwn(b *testing.B) {
	if os.Getuid() != 0 {
		b.Skip("only root gives files away")
	}
	dir := filepath.Join(b.TempDir(), "v")
	for i := range 1000 {
		sub := filepath.Join(dir, fmt.Sprint(i%10), fmt.Sprint(i))
		require.NoError(b, os.MkdirAll(sub, 0o755))
		for j := range 100 {
			require.NoError(b, os.WriteFile(filepath.Join(sub, fmt.Sprint(j)), nil, 0o644))
		}
	}
	group := 10000
	var serial, changed, right time.Duration
	for b.Loop() {
		timed := func(sum *time.Duration, f func()) {
			begun := time.Now()
			f()
			*sum += time.Since(begun)
		}
		group += 2
		timed(&serial, func() { serialOwn(b, dir, group) })
		req := ownedBy(int64(group + 1))
		timed(&changed, func() { require.NoError(b, req.SetOwnership(b.Context(), dir, false)) })
		timed(&right, func() { require.NoError(b, req.SetOwnership(b.Context(), dir, false)) })
	}
	b.ReportMetric(float64(serial)/float64(b.N)/1e6, "serial-ms")
	b.ReportMetric(float64(serial)/float64(changed), "x-changing")
	b.ReportMetric(float64(serial)/float64(right), "x-right-already")
}
