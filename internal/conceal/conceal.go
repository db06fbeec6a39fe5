// Package conceal removes values from texts, also where the text contains them quoted, any
// number of times, as Go and JSON quote strings.
package conceal

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Value is a text to replace.
type Value struct{ Old, New string }

// Text returns text with each occurrence of a value replaced, the longest where several begin.
// Empty values are ignored. It takes time in proportion to the number of values and the size of
// the text, unless they nearly match.
func Text(text string, values []Value) string {
	if text == "" || len(values) == 0 {
		return text
	}
	values = slices.Clone(values)
	// The first match is used.
	slices.SortStableFunc(values, func(a, b Value) int { return len(b.Old) - len(a.Old) })
	var out strings.Builder
next:
	for at := 0; at < len(text); {
		for _, v := range values {
			if n := match(text[at:], v.Old); n > 0 {
				out.WriteString(v.New)
				at += n
				continue next
			}
		}
		out.WriteByte(text[at])
		at++
	}
	return out.String()
}

// match returns the length of the prefix of text that is value, quoted or not; 0 if there is
// none. Each level of quoting doubles backslashes and precedes quotation marks with them, so that
// their number is not compared.
func match(text, value string) int {
	rest := text
	for value != "" {
		escapes, own := backslashes(rest, maxBackslashes), backslashes(value, len(value))
		if escapes < own || escapes > 0 && own == 0 && len(rest) == len(text) && !quotable(value) {
			return 0
		}
		rest, value = rest[escapes:], value[own:]
		if value == "" {
			break
		}
		r, size := utf8.DecodeRuneInString(value)
		n := matchRune(rest, value[:size], r, escapes > 0)
		if n == 0 || escapes > 0 && own == 0 && n == size && !quotable(value) {
			return 0
		}
		rest, value = rest[n:], value[size:]
	}
	return len(text) - len(rest)
}

// maxBackslashes bounds the time of a match: a text may consist of backslashes.
const maxBackslashes = 1 << 10

// backslashes returns the number of backslashes at the beginning of text, at most limit.
func backslashes(text string, limit int) (n int) {
	for n < min(len(text), limit) && text[n] == '\\' {
		n++
	}
	return n
}

// quotable reports whether quoting precedes the first character of value with a backslash.
func quotable(value string) bool {
	r, _ := utf8.DecodeRuneInString(value)
	return r == '"' || r == '\'' || r < ' ' || r >= 0x7f || strings.ContainsRune("<>&", r)
}

// escapeLetters are the escape sequences with a letter.
var escapeLetters = map[rune]byte{'\a': 'a', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v'}

// matchRune returns the length of the prefix of text that is r, as in the value or after the
// backslash of an escape sequence; 0 if there is none.
func matchRune(text, literal string, r rune, escaped bool) int {
	if strings.HasPrefix(text, literal) {
		return len(literal)
	}
	if !escaped || text == "" {
		return 0
	}
	if letter, ok := escapeLetters[r]; ok && text[0] == letter {
		return 1
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[text[0]]
	if digits == 0 || len(text) <= digits {
		return 0
	}
	code, err := strconv.ParseUint(text[1:1+digits], 16, 32)
	if err != nil || rune(code) != r && !(r == utf8.RuneError && len(literal) == 1 && byte(code) == literal[0]) {
		return 0
	}
	return 1 + digits
}
