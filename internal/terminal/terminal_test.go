package terminal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/terminal"
)

func TestTextIsNoCommandToATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"plain, ä, 日本\ttab":                  "plain, ä, 日本\ttab",
		"\x1b]0;title\a\x1b[2J\r\u202eé":     `\x1b]0;title\a\x1b[2J\r\u202eé`,
		"\u009b1m\xff\n12:04:05 all is well": "\\u009b1m\ufffd\n    12:04:05 all is well",
	} {
		assert.Equal(t, want, terminal.Escape(text))
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[2J\nb\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		for line := range strings.Lines(terminal.Escape(text)) {
			for _, r := range strings.TrimSuffix(line, "\n") {
				if r < ' ' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e {
					t.Errorf("%q contains %U", line, r)
				}
			}
		}
	})
}
