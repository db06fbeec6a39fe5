package imagegc

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const hex64 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// names are image references of all shapes; plain are those that normalizeFast covers.
var (
	plain = []string{
		"busybox", "busybox:1.36", "library/busybox", "docker.io/busybox", "docker.io/library/busybox:latest",
		"registry.k8s.io/pause:3.10", "registry.k8s.io/kube-proxy@sha256:" + hex64, "registry.k8s.io/a/b/c:v1@sha256:" + hex64,
		"localhost/app", "localhost:5000/app:dev", "10.0.0.1:5000/a_b.c-d/e", "quay.io/x:V1_2-a.b", "foo:5000",
	}
	others = []string{
		"", ":", "@", "/", "a/", "/a", "a//b", "a:", "a@", "a@sha256:" + hex64[:63], "a@sha512:" + hex64 + hex64, hex64, "sha256:" + hex64,
		"docker.io/", "index.docker.io/busybox", "index.docker.io/a/b", "A", "Foo/bar", "FOO.io/bar", "a__b", "a---b", "a._b", "-a", "a-",
		"a:.x", "a:-x", "a:" + strings.Repeat("t", 128), "a:" + strings.Repeat("t", 129), strings.Repeat("a", 256), "a/" + strings.Repeat("b", 250),
		"[::1]:5000/a", "a.b:/c", "a.b:x/c", "a:1/b", "ä", "a b", "localhost", "localhost/a/b:", "x.y/Z", "a.b-.c/d", hex64 + "/a", "docker.io/" + hex64,
		"a@b@sha256:" + hex64, "a:b:c", "a@sha256:" + strings.ToUpper(hex64),
	}
)

func TestPlainNamesAreSpelledAsAnyOther(t *testing.T) {
	for _, name := range plain {
		got, ok := normalizeFast(name)
		assert.True(t, ok, name)
		assert.Equal(t, normalizeAny(name), got, name)
	}
	for _, name := range others {
		if got, ok := normalizeFast(name); ok {
			assert.Equal(t, normalizeAny(name), got, name)
		}
	}
}

func TestPlainNamesOfRandomPartsAreSpelledAsAnyOther(t *testing.T) {
	parts := []string{"a", "b1", "Z", "0", ".", "_", "-", "/", ":", "@", "docker.io", "index.docker.io", "localhost", "library", "x.y:5000", "latest", "sha256:" + hex64, hex64}
	random := rand.New(rand.NewPCG(1, 2))
	covered := 0
	for range 20_000 {
		var name strings.Builder
		for range 1 + random.IntN(7) {
			name.WriteString(parts[random.IntN(len(parts))])
		}
		if got, ok := normalizeFast(name.String()); ok {
			covered++
			assert.Equal(t, normalizeAny(name.String()), got, name.String())
		}
	}
	assert.Greater(t, covered, 1000)
}

func FuzzSpelled(f *testing.F) {
	for _, name := range append(plain, others...) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, ok := normalizeFast(name); ok && got != normalizeAny(name) {
			t.Errorf("%q: %q, but reference has %q", name, got, normalizeAny(name))
		}
	})
}

func BenchmarkSpelled(b *testing.B) {
	for name, spell := range map[string]func(string) string{"plain": normalize, "reference": normalizeAny} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, image := range plain {
					spell(image)
				}
			}
		})
	}
}
