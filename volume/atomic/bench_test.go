package atomic_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/volume/atomic"
)

// A payload of 1 MiB in 16 files, compared with writing the same files plainly and
// with detecting that nothing changed.
func BenchmarkUpdate1MiB(b *testing.B) {
	needLinks(b)
	payload := func(c byte) atomic.Payload {
		p := atomic.Payload{}
		for i := range 16 {
			p[string(rune('a'+i))] = atomic.File{Data: bytes.Repeat([]byte{c}, 64<<10), Mode: 0o644}
		}
		return p
	}
	two := []atomic.Payload{payload('0'), payload('1')}
	b.Run("atomic", func(b *testing.B) {
		dir := b.TempDir()
		b.SetBytes(1 << 20)
		for i := 0; b.Loop(); i++ {
			_, err := atomic.Write(dir, two[i%2], atomic.Options{})
			require.NoError(b, err)
		}
	})
	b.Run("plain", func(b *testing.B) {
		dir := b.TempDir()
		b.SetBytes(1 << 20)
		for i := 0; b.Loop(); i++ {
			for name, f := range two[i%2] {
				require.NoError(b, os.WriteFile(filepath.Join(dir, name), f.Data, f.Mode))
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		dir := b.TempDir()
		b.SetBytes(1 << 20)
		for b.Loop() {
			_, err := atomic.Write(dir, two[0], atomic.Options{})
			require.NoError(b, err)
		}
	})
}
