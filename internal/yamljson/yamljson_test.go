package yamljson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/yamljson"
)

func TestConvert(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                "null",
		"a: 1":                            `{"a":1}`,
		"a: &x [1, true]\nb: *x":          `{"a":[1,true],"b":[1,true]}`,
		"%YAML 1.1\n---\na: 010":          `{"a":8}`,
		"1: yes":                          `{"1":true}`,
		"a: &x {b: 1}\nc: {<<: *x, d: 2}": `{"a":{"b":1},"c":{"b":1,"d":2}}`,
	} {
		got, err := yamljson.Convert(doc)
		require.NoError(t, err, doc)
		assert.JSONEq(t, want, string(got), doc)
	}
}

func TestConvertRefuses(t *testing.T) {
	for doc, want := range map[string]string{
		"a: 1\na: 2":                             "line 2: key \"a\" already set in map",
		"{a: 1} {b: 2}":                          "yaml: line 1: ",
		"a: [":                                   "yaml: line 1: ",
		"{a: 1}\n---\n}":                         "yaml: line",
		strings.Repeat("x", yamljson.MaxBytes+1): "has 1572865 bytes; at most 1572864 are allowed",
		strings.Repeat("- x\n", yamljson.MaxValues):                                          "has more than 100000 values",
		strings.Repeat("[", 101) + strings.Repeat("]", 101):                                  "is nested more than 100 levels deep",
		"a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 16) + "]": "once its aliases are expanded",
	} {
		_, err := yamljson.Convert(doc)
		require.ErrorContains(t, err, want, doc[:min(len(doc), 99)])
		assert.NotContains(t, err.Error(), "\n")
	}
}

func TestAnErrorNamesTwentyDuplicatesAtMost(t *testing.T) {
	_, err := yamljson.Convert(strings.Repeat("a: 1\n", 1000))
	require.ErrorContains(t, err, "line 21: key")
	require.ErrorContains(t, err, "and 979 more")
	assert.NotContains(t, err.Error(), "line 22: key")
}

func TestCheckJSON(t *testing.T) {
	for data, ok := range map[string]bool{
		`{"a":[1,2]}`:                           true,
		`"` + strings.Repeat(",[", 10) + `"`:    true,
		`"a\"` + strings.Repeat(",{", 10) + `"`: true,
		`[1,2,3,4,5,6]`:                         false,
		`[[[[[[]]]]]]`:                          false,
	} {
		require.True(t, json.Valid([]byte(data)), data)
		if err := yamljson.CheckJSON([]byte(data), 6); ok {
			assert.NoError(t, err, data)
		} else {
			assert.EqualError(t, err, "has more than 6 values", data)
		}
	}
	require.EqualError(t, yamljson.CheckJSON([]byte(strings.Repeat("[", 101)+strings.Repeat("]", 101)), 1000), "is nested more than 100 levels deep")
}

func FuzzConvert(f *testing.F) {
	for _, doc := range []string{
		"a: &a [1,2]\nb: [*a,*a]", "a: &a {b: 1}\nc: {<<: *a}", "? {a: b}\n: c", "%TAG ! x\n---\na: !x b",
		"a: |\n  x\n b", "- - - a", "{a: {b: [c", "a: *a", "a: &a [*a]", "1e999999999: 0x1", "\u2028a: \u0085b", "a: 2001-01-01\nb: 1:30",
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		out, err := yamljson.Convert(doc)
		if err != nil {
			require.LessOrEqual(t, len(err.Error()), 5<<10)
			return
		}
		require.True(t, json.Valid(out))
		require.NoError(t, yamljson.CheckJSON(out, 3*yamljson.MaxValues))
		require.LessOrEqual(t, len(out), 8*yamljson.MaxBytes)
	})
}
