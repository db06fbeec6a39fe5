package page

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFiguresAreForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 ms", 12 * time.Millisecond: "12 ms", 1500 * time.Millisecond: "1.5 s", 3 * time.Second: "3 s", 59 * time.Second: "59 s",
		61 * time.Second: "1 min 1 s", 10*time.Minute + 5*time.Second: "10 min", 90 * time.Minute: "1 h 30 min", 26 * time.Hour: "1 d 2 h", 400 * 24 * time.Hour: "400 d",
	} {
		assert.Equal(t, want, age(d), d)
	}
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 300 << 20: "300 MiB", 5 << 40: "5.0 TiB", 1 << 63: "8.0 EiB"} {
		assert.Equal(t, want, size(n))
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		assert.Equal(t, want, count(n))
	}
	assert.Equal(t, "< 0.001", cpu(999))
	assert.Equal(t, "1.500", cpu(1_500_000_000))
	assert.Equal(t, "1 pod", many(1, "pod", "pods"))
}

func TestTextOfOthersIsMadeHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain":            "plain",
		"two\nlines\tand":  "two\nlines\tand",
		"\x1b[31mred\x9b":  "\uFFFD[31mred\uFFFD",
		"a\u202Eb\u2066c":  "a\uFFFDb\uFFFDc",
		"bad \xff\xfe end": "bad \uFFFD\uFFFD end",
		"kept \uFFFD":      "kept \uFFFD",
		"äöü日本":            "äöü日本",
		"one too many":     "one too many",
	} {
		assert.Equal(t, want, clean(text, 40))
	}
	assert.Equal(t, "äöü…", clean("äöü日本", 3))
	assert.Equal(t, "äöü…", cut("äöü日本", 3))
	assert.Equal(t, "äöü", cut("äöü", 3))

	n := Node{Name: "\x00", Pods: []Pod{{IPs: []string{"\x01"}, Containers: []Container{{Probes: []Probe{{Runs: []Run{{Output: "\x02"}}}}}}}}}
	tidy := tidied(n)
	assert.Equal(t, []string{"\uFFFD", "\uFFFD", "\uFFFD"}, []string{tidy.Name, tidy.Pods[0].IPs[0], tidy.Pods[0].Containers[0].Probes[0].Runs[0].Output})
	assert.Equal(t, "\x01", n.Pods[0].IPs[0], "the caller's value is his")
	assert.Equal(t, Node{}, tidied(Node{}))
}
