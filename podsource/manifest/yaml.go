package manifest

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// yamlToJSON returns the only document of data as JSON, at a bounded cost. Duplicate
// keys are an error.
func yamlToJSON(data []byte) ([]byte, error) {
	doc, err := onlyDocument(string(data))
	if err != nil {
		return nil, err
	}
	return yamljson.Convert(doc)
}

// onlyDocument returns the one document of data that holds anything, moved
// down to the line it is on, so that errors name the right one.
func onlyDocument(data string) (string, error) {
	var doc string
	count, line, docLine := 0, 0, 0
	for part := range documents(data) {
		if hasContent(part) {
			count++
			doc, docLine = part, line
		}
		line += strings.Count(part, "\n")
	}
	switch count {
	case 0:
		return "", errors.New("is empty; one pod per file")
	case 1:
		return strings.Repeat("\n", docLine) + doc, nil
	}
	return "", tooMany(count)
}

// documents cuts data at the YAML document markers: "---" or "..." at the
// beginning of a line, which end a document even inside a quoted string. Each
// part begins with its marker.
func documents(data string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i < len(data); i++ {
			if i > start && isMarker(data[i:]) && endsLine(data[:i]) {
				if !yield(data[start:i]) {
					return
				}
				start = i
			}
		}
		yield(data[start:])
	}
}

func isMarker(s string) bool {
	if !strings.HasPrefix(s, "---") && !strings.HasPrefix(s, "...") {
		return false
	}
	return len(s) == 3 || s[3] == ' ' || s[3] == '\t' || endsLine(s[:3+firstRune(s[3:])])
}

func firstRune(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// endsLine reports whether s ends with a line break of YAML 1.1.
func endsLine(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// hasContent reports whether a part holds more than its marker, comments and
// directives.
func hasContent(part string) bool {
	if isMarker(part) {
		part = part[3:]
	}
	for text := range strings.FieldsFuncSeq(part, func(r rune) bool { return endsLine(string(r)) }) {
		text = strings.TrimSpace(text)
		if text != "" && text[0] != '#' && text[0] != '%' {
			return true
		}
	}
	return false
}

func tooMany(documents int) error {
	return fmt.Errorf("has %d documents; one pod per file", documents)
}
