package page

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tidied returns n with clean applied to every string, so that templates need not escape
// control characters. The slices of n are not changed.
func tidied(n Node) Node {
	return tidy(reflect.ValueOf(n)).Interface().(Node)
}

func tidy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		out := reflect.New(v.Type()).Elem()
		out.SetString(clean(v.String(), full))
		return out
	case reflect.Slice:
		if v.IsNil() || !hasText(v.Type().Elem()) {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(tidy(v.Index(i)))
		}
		return out
	case reflect.Struct:
		if !hasText(v.Type()) {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(tidy(v.Field(i)))
		}
		return out
	}
	return v
}

// hasText reports whether a type may contain strings. time.Time does not.
func hasText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Slice:
		return hasText(t.Elem())
	case reflect.Struct:
		return t.PkgPath() != "time" && t.PkgPath() != ""
	}
	return false
}

// clean replaces invalid UTF-8, control characters and characters that change the
// direction of text by U+FFFD, and truncates text to most characters.
func clean(text string, most int) string {
	if simple(text) { // the usual case
		return cut(text, most)
	}
	var b strings.Builder
	n := 0
	for i, r := range text {
		if n == most {
			b.WriteString("…")
			break
		}
		n++
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			r = '\uFFFD' // invalid UTF-8
		case r == '\n' || r == '\t':
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Co, r):
			r = '\uFFFD'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// simple reports whether text is printable ASCII.
func simple(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// ends returns text if it has at most most characters, else its beginning and its end: the cause of
// an error is at the end.
func ends(text string, most int) string {
	if len(text) <= most {
		return text
	}
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most/3]) + " … " + string(runes[len(runes)-(most-most/3-3):])
}

// cut truncates text to most characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}
