// Package yamljson converts YAML documents to JSON and bounds the cost of it: the
// size of the text, the expansion of aliases, the number of values and their depth.
package yamljson

import (
	"errors"
	"fmt"
	"io"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// The bounds of one document. An object of the API server has at most 1.5 MiB, the
// largest value that etcd stores by default. The YAML parser needs about 100 bytes
// of memory for each byte of a document that consists of short values.
const (
	MaxBytes  = 3 << 19
	MaxValues = 100_000 // scalars, lists and maps, aliases expanded
	MaxDepth  = 100

	// maxErrors is the number of duplicate keys that an error names.
	maxErrors = 20

	// maxErrorText is the longest error, in bytes: errors quote keys.
	maxErrorText = 4 << 10
)

// Convert returns the first document of a text as JSON. Duplicate keys are errors, and
// so is malformed text after the document. Errors name the line.
func Convert(doc string) ([]byte, error) {
	if err := CheckSize(len(doc)); err != nil {
		return nil, err
	}
	// Aliases share memory in this tree; in JSON each has a copy of its own.
	var tree any
	dec := goyaml.NewDecoder(strings.NewReader(doc))
	dec.SetStrict(true)
	if err := dec.Decode(&tree); err != nil && err != io.EOF {
		return nil, yamlError(err)
	}
	if err := measure(tree); err != nil {
		return nil, err
	}
	out, err := yaml.YAMLToJSONStrict([]byte(doc))
	if err != nil {
		return nil, yamlError(err)
	}
	// Decode stops at the end of the first value. After a value in braces or quotes
	// more text may follow.
	for {
		switch err := dec.Decode(new(ignored)); err {
		case nil:
		case io.EOF:
			return out, nil
		default:
			return nil, yamlError(err)
		}
	}
}

// CheckSize returns an error if a document of n bytes is too large.
func CheckSize(n int) error {
	if n > MaxBytes {
		return fmt.Errorf("has %d bytes; at most %d are allowed", n, MaxBytes)
	}
	return nil
}

// ignored takes any YAML value and keeps nothing of it.
type ignored struct{}

func (*ignored) UnmarshalYAML(func(any) error) error { return nil }

// measure returns an error if a decoded document exceeds the bounds once its aliases
// are expanded.
func measure(tree any) error {
	values, size := 0, 0
	var walk func(node any, depth int) error
	walk = func(node any, depth int) error {
		values++
		switch {
		case values > MaxValues:
			return tooManyValues(MaxValues)
		case depth > MaxDepth:
			return errTooDeep
		}
		switch node := node.(type) {
		case string:
			size += len(node)
		case []any:
			for _, child := range node {
				if err := walk(child, depth+1); err != nil {
					return err
				}
			}
		case map[any]any:
			for key, child := range node {
				if key, ok := key.(string); ok {
					size += len(key)
				}
				if err := walk(child, depth+1); err != nil {
					return err
				}
			}
		}
		if size > MaxBytes {
			return fmt.Errorf("has more than %d bytes once its aliases are expanded", MaxBytes)
		}
		return nil
	}
	return walk(tree, 1)
}

var errTooDeep = fmt.Errorf("is nested more than %d levels deep", MaxDepth)

func tooManyValues(limit int) error { return fmt.Errorf("has more than %d values", limit) }

// CheckJSON returns an error if data, which must be valid JSON, has more than maxValues
// values or is nested deeper than MaxDepth. It allocates nothing.
func CheckJSON(data []byte, maxValues int) error {
	switch values, depth := shape(data); {
	case values > maxValues:
		return tooManyValues(maxValues)
	case depth > MaxDepth:
		return errTooDeep
	}
	return nil
}

// CountJSON returns the number of values in data, which must be valid JSON. An empty
// list or map counts as two.
func CountJSON(data []byte) int {
	values, _ := shape(data)
	return values
}

func shape(data []byte) (values, maxDepth int) {
	values = 1
	for i, depth := 0, 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			values++ // its first item
			depth++
			maxDepth = max(maxDepth, depth)
		case '}', ']':
			depth--
		case ',':
			values++
		}
	}
	return values, maxDepth
}

// yamlError makes one line of an error of the parser, and adds the line number where
// the parser leaves it out: on the first line.
func yamlError(err error) error {
	if e, ok := errors.AsType[*goyaml.TypeError](err); ok && len(e.Errors) > maxErrors {
		more := len(e.Errors) - maxErrors
		err = &goyaml.TypeError{Errors: append(e.Errors[:maxErrors:maxErrors], fmt.Sprintf("and %d more", more))}
	}
	text := err.Error()
	if !strings.Contains(text, "line ") {
		text = "yaml: line 1: " + strings.TrimPrefix(text, "yaml: ")
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	text = strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return errors.New(text)
}
