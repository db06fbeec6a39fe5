package fakecri

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// maxScript is how long a script may be, in bytes: it is what a person writes.
const maxScript = 1 << 20

// readYAML reads the only document of data into the struct that into points to,
// and into nothing else if there is an error. The fields of structs have the
// names that they have in Go, in camel case: RunFor is runFor, OOM is oom.
// Durations are as "90s", other numbers may be quantities as "64Mi" and "250m".
// What a Go value cannot hold, and a field that it has not, is an error with
// the place of it.
func readYAML(data []byte, into any) error {
	if len(data) > maxScript {
		return fmt.Errorf("is longer than %d bytes", maxScript)
	}
	raw, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return err
	}
	docs := goyaml.NewDecoder(bytes.NewReader(data))
	for n := 0; ; n++ {
		err := docs.Decode(new(skipped))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if n > 0 {
			return errors.New("has more than one document")
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return err
	}
	to := reflect.ValueOf(into).Elem()
	value := reflect.New(to.Type()).Elem()
	if err := decode(tree, value, ""); err != nil {
		return err
	}
	to.Set(value)
	return nil
}

// skipped takes any YAML value and keeps nothing of it.
type skipped struct{}

func (*skipped) UnmarshalYAML(func(any) error) error { return nil }

var (
	typeDuration = reflect.TypeFor[time.Duration]()
	typeCurve    = reflect.TypeFor[Curve]()
)

// decode puts a value of JSON at a place of the script into one of Go. What is
// null is left as it is.
func decode(from any, to reflect.Value, at string) error {
	if from == nil {
		return nil
	}
	switch to.Type() {
	case typeDuration:
		return decodeDuration(from, to, at)
	case typeCurve:
		return decodeCurve(from, to, at)
	}
	switch to.Kind() {
	case reflect.Struct:
		return decodeStruct(from, to, at)
	case reflect.Map:
		return decodeMap(from, to, at)
	case reflect.Slice:
		list, ok := from.([]any)
		if !ok {
			return wrong(at, from, "a list")
		}
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, v := range list {
			if err := decode(v, to.Index(i), fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return decode(from, to.Elem(), at)
	case reflect.String:
		switch v := from.(type) {
		case string:
			to.SetString(v)
			return nil
		case json.Number: // the command [sleep, 5]
			to.SetString(v.String())
			return nil
		}
		return wrong(at, from, "a text")
	case reflect.Bool:
		v, ok := from.(bool)
		if !ok {
			return wrong(at, from, "true or false")
		}
		to.SetBool(v)
		return nil
	}
	return decodeNumber(from, to, at)
}

func decodeStruct(from any, to reflect.Value, at string) error {
	fields, ok := from.(map[string]any)
	if !ok {
		return wrong(at, from, "a map of fields")
	}
	known := map[string][]int{} // their indices
	for _, f := range reflect.VisibleFields(to.Type()) {
		if f.IsExported() && !f.Anonymous && f.Type.Kind() != reflect.Func {
			known[camel(f.Name)] = f.Index
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		index, ok := known[name]
		if !ok {
			return fmt.Errorf("%s: there is no such field; there are %s", under(at, name), strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := decode(fields[name], to.FieldByIndex(index), under(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func decodeMap(from any, to reflect.Value, at string) error {
	entries, ok := from.(map[string]any)
	if !ok {
		return wrong(at, from, "a map")
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), len(entries)))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		value := reflect.New(to.Type().Elem()).Elem()
		if err := decode(entries[key], value, under(at, key)); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(key), value)
	}
	return nil
}

func decodeDuration(from any, to reflect.Value, at string) error {
	text, ok := from.(string)
	if n, isNumber := from.(json.Number); isNumber && n == "0" {
		text, ok = "0", true
	}
	d, err := time.ParseDuration(text)
	if !ok || err != nil {
		return wrong(at, from, `a duration such as "90s"`)
	}
	to.SetInt(int64(d))
	return nil
}

// decodeCurve takes a Curve, its points alone, or one number: a use that does
// not change.
func decodeCurve(from any, to reflect.Value, at string) error {
	switch v := from.(type) {
	case map[string]any:
		return decodeStruct(v, to, at)
	case []any:
		return decode(v, to.FieldByName("Points"), at)
	}
	point := Point{}
	if err := decode(from, reflect.ValueOf(&point.Value).Elem(), at); err != nil {
		return err
	}
	to.Set(reflect.ValueOf(Curve{Points: []Point{point}}))
	return nil
}

func decodeNumber(from any, to reflect.Value, at string) error {
	var text string
	switch v := from.(type) {
	case string:
		text = v
	case json.Number:
		text = v.String()
	default:
		return wrong(at, from, "a number")
	}
	if isHuge(text) {
		return wrong(at, from, "a number of a size that there is")
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return wrong(at, from, `a number, such as 5, "250m" or "64Mi"`)
	}
	switch to.Kind() {
	case reflect.Float64:
		f := q.AsApproximateFloat64()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return wrong(at, from, "a number that is not so large")
		}
		to.SetFloat(f)
	case reflect.Int, reflect.Int32, reflect.Int64:
		n, ok := wholeOf(q)
		if !ok || to.OverflowInt(n) {
			return wrong(at, from, "a whole number of "+strconv.Itoa(to.Type().Bits())+" bits")
		}
		to.SetInt(n)
	case reflect.Uint64:
		n, ok := wholeOf(q)
		if !ok || n < 0 {
			return wrong(at, from, "a whole number from 0")
		}
		to.SetUint(uint64(n))
	default:
		return fmt.Errorf("%s: cannot be written in YAML", at)
	}
	return nil
}

// isHuge reports whether reading the number would take long: it does for
// exponents of many digits.
func isHuge(text string) bool {
	if len(text) > 40 {
		return true
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 || i == len(text)-1 {
		return false
	}
	n, err := strconv.Atoi(text[i+1:])
	return err == nil && (n > 30 || n < -30) || errors.Is(err, strconv.ErrRange)
}

// wholeOf returns a quantity that is a whole number of 64 bits.
func wholeOf(q resource.Quantity) (int64, bool) {
	n := q.Value() // rounded, and cut off
	return n, resource.NewQuantity(n, q.Format).Cmp(q) == 0
}

// camel is the name of a field in YAML: what is in capitals at its beginning is
// in small letters, but for the one that begins the next word.
func camel(name string) string {
	letters := []rune(name)
	for i, c := range letters {
		if !unicode.IsUpper(c) || i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(c)
	}
	return string(letters)
}

// under is the place of a field, or of an entry, of what is at a place.
func under(at, name string) string {
	if strings.ContainsAny(name, ". []\n\"") || name == "" {
		return at + "[" + strconv.Quote(name) + "]"
	}
	if at == "" {
		return name
	}
	return at + "." + name
}

func wrong(at string, from any, want string) error {
	raw, err := json.Marshal(from)
	if err != nil || len(raw) > 60 {
		raw = fmt.Appendf(nil, "a %T", from)
		switch from.(type) {
		case map[string]any:
			raw = []byte("a map")
		case []any:
			raw = []byte("a list")
		case string:
			raw = []byte("a long text")
		}
	}
	if at == "" {
		at = "the script"
	}
	return fmt.Errorf("%s: %s is not %s", at, raw, want)
}
