package conceal_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/conceal"
)

func TestValuesAreConcealed(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"a secret, a secret", "a X, a X"},
		{"secrets", "Xs"},
		{"longer secret value", "Y"},
		{"sec ret", "sec ret"},
		{`\secret`, `\X`},
		{`C:\\dir\\secret`, `C:\\dir\\X`},
		{`s\ecret`, `s\ecret`},
	} {
		values := []conceal.Value{{"secret", "X"}, {"", "never"}, {"longer secret value", "Y"}}
		assert.Equal(t, tc.want, conceal.Text(tc.text, values), tc.text)
	}
}

// However often a text was quoted, the value is not left in it.
func TestQuotedValuesAreConcealed(t *testing.T) {
	for _, value := range []string{
		`say "hello"`, `C:\path\"x"`, "line one\nline two", "tab\tand\x01control", `\`, `\\`, `a\`, `"`, `'single'`, "ünïcode", "emoji 😀 end", `<tag>&"`, "zero\x00byte", "cut\xffbyte", `\n`, `x\nx`,
	} {
		quoted := value
		for level := range 5 {
			text := "before " + quoted + " after"
			assert.Equal(t, "before X after", conceal.Text(text, []conceal.Value{{value, "X"}}), "%q, level %d", value, level)
			quoted = strings.TrimSuffix(strings.TrimPrefix(strconv.Quote(quoted), `"`), `"`)
		}
		if strings.Contains(value, "\xff") {
			continue // which JSON replaces
		}
		asJSON, err := json.Marshal(value)
		require.NoError(t, err)
		inner := string(asJSON[1 : len(asJSON)-1])
		for _, text := range []string{inner, strings.Trim(strconv.QuoteToASCII(value), `"`), fmt.Sprintf("%+q", inner)[1 : len(fmt.Sprintf("%+q", inner))-1]} {
			if strings.HasSuffix(value, `"`) && strings.HasSuffix(text, `\`) {
				continue // Trim removed the value's own quotation mark
			}
			assert.Equal(t, "X", conceal.Text(text, []conceal.Value{{value, "X"}}), "%q in %s", value, text)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("text with a secret", "secret", uint8(1))
	f.Add(`a\\"b`, `\"`, uint8(3))
	f.Fuzz(func(t *testing.T, text, value string, levels uint8) {
		conceal.Text(text, []conceal.Value{{value, "X"}}) // must return
		quoted := value
		for range levels % 4 {
			q := strconv.Quote(quoted)
			quoted = q[1 : len(q)-1]
		}
		if value != "" {
			if got := conceal.Text(quoted, []conceal.Value{{value, ""}}); strings.Contains(got, value) && len(value) > 1 && !strings.Contains(value, `\`) {
				t.Fatalf("%q in %q: %q", value, quoted, got)
			}
		}
	})
}
