package staticuid

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A Quantity has its text if it has been formatted. That is hashed, and differs between versions:
// since 1.38 the text has a format of its own, and every quantity that was parsed has a text; before,
// only one whose text in the manifest was the canonical one that the parser recognizes.

// quantity writes a quantity. Until 1.37 a program with the library of 1.38 cannot distinguish "1Gi"
// from "1024Mi", which had no text: it has the text of the first.
func (d dumper) quantity(v reflect.Value) {
	d.out.WriteString("{i:(resource.int64Amount)")
	d.linked(v.FieldByName("i"))
	d.out.WriteString(" d:(resource.infDecAmount)")
	d.linked(v.FieldByName("d"))
	format := resource.Format(v.FieldByName("Format").String())
	text := v.FieldByName("s")
	newer := text.Kind() == reflect.Struct
	if newer { // the library is that of 1.38
		text = text.FieldByName("str")
	}
	s := text.String()
	switch {
	case d.release >= 38:
		d.out.WriteString(" s:(resource.cachedString){str:(string)" + s + " format:(resource.formatCode)" + strconv.Itoa(formatCode(s, format)) + "}")
	case newer && !recognized(s, format, v):
		d.out.WriteString(" s:(string)")
	default:
		d.out.WriteString(" s:(string)" + s)
	}
	d.out.WriteString(" Format:(resource.Format)" + string(format) + "}")
}

// formatCode returns the number of the format of a text.
func formatCode(text string, format resource.Format) int {
	switch {
	case text == "":
		return 0
	case format == resource.DecimalExponent:
		return 1
	case format == resource.BinarySI:
		return 2
	case format == resource.DecimalSI:
		return 3
	}
	return 0
}

// recognized reports whether the parser of 1.37 recognizes a canonical text, and keeps it.
func recognized(text string, format resource.Format, v reflect.Value) bool {
	if isInt64 := v.FieldByName("d").Field(0).IsNil(); !isInt64 || text == "" {
		return false
	}
	number := strings.TrimLeft(text, "+-")
	if i := strings.IndexFunc(number, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		number = number[:i]
	}
	if format != resource.BinarySI {
		return true
	}
	n, err := strconv.ParseInt(number, 10, 64)
	return err == nil && n&7 != 0
}

// FormatQuantities gives every quantity that was parsed in a value, a pointer, its text.
func FormatQuantities(v any) { formatQuantities(reflect.ValueOf(v)) }

func formatQuantities(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			formatQuantities(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			formatQuantities(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if q, ok := v.MapIndex(key).Interface().(resource.Quantity); ok {
				format(&q)
				v.SetMapIndex(key, reflect.ValueOf(q))
			}
		}
	case reflect.Struct:
		if v.CanAddr() {
			if q, ok := v.Addr().Interface().(*resource.Quantity); ok {
				format(q)
				return
			}
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				formatQuantities(v.Field(i))
			}
		}
	}
}

// format gives a quantity its text, unless it is the zero value.
func format(q *resource.Quantity) {
	if q.Format != "" {
		_ = q.String()
	}
}
