package staticuid

import (
	"bufio"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A dumper writes a value as the format %#v of package go-spew writes it in one line, with
// sorted keys and without addresses, but as if the types of k8s.io/api/core/v1 were the
// internal types of a version of Kubernetes.
type dumper struct {
	out     *bufio.Writer
	layout  layout
	release Release
	spec    reflect.Value // the pod's spec, which has fields that are elsewhere in some versions
}

const resourceList = "core.ResourceList" // the one internal type that is a map

// typed writes a value and its type. An invalid v is the zero value.
func (d dumper) typed(typ string, v reflect.Value) {
	d.out.WriteString("(" + typ + ")")
	elem, pointer := strings.CutPrefix(typ, "*")
	switch {
	case !pointer && v.Kind() == reflect.Pointer: // became a pointer since that version
		d.bare(typ, v.Elem())
	case !pointer:
		d.bare(typ, v)
	case !v.IsValid() || v.IsNil():
		d.out.WriteString("<nil>")
	default:
		d.bare(elem, v.Elem())
	}
}

// bare writes a value that is no pointer.
func (d dumper) bare(typ string, v reflect.Value) {
	if typ == resourceList {
		typ = "map[core.ResourceName]resource.Quantity"
	}
	fields, isStruct := d.layout[typ]
	switch {
	case isStruct:
		d.fields(fields, v)
	case strings.HasPrefix(typ, "[]"):
		if !v.IsValid() || v.IsNil() {
			d.out.WriteString("<nil>")
			return
		}
		d.out.WriteByte('[')
		for i := range v.Len() {
			d.separate(i)
			d.bare(typ[len("[]"):], v.Index(i))
		}
		d.out.WriteByte(']')
	case strings.HasPrefix(typ, "map["):
		key, elem, _ := strings.Cut(typ[len("map["):], "]")
		d.entries(v, func(v reflect.Value) { d.bare(key, v) }, func(v reflect.Value) { d.bare(elem, v) })
	case v.IsValid():
		d.linked(v)
	case typ == "bool":
		d.out.WriteString("false")
	case strings.HasPrefix(typ, "int"):
		d.out.WriteString("0")
	}
}

func (d dumper) fields(fields []field, v reflect.Value) {
	d.out.WriteByte('{')
	for i, f := range fields {
		d.separate(i)
		d.out.WriteString(f.name + ":")
		var value reflect.Value
		if v.IsValid() {
			value = v.FieldByName(f.name)
		}
		if !value.IsValid() && slices.Contains(formerSecurityContext, f.name) {
			value = d.spec.FieldByName(f.name)
		}
		d.typed(f.typ, value)
	}
	d.out.WriteByte('}')
}

// formerSecurityContext are the fields of the pod's spec that are fields of its internal
// security context until 1.36.
var formerSecurityContext = []string{"HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace", "HostUsers"}

// linked writes a value as its type in this program, which is that of every version: of
// the machinery of the API and of the standard library.
func (d dumper) linked(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		d.out.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.out.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.out.WriteString(strconv.FormatUint(v.Uint(), 10))
	case reflect.String:
		d.out.WriteString(v.String())
	case reflect.Slice:
		if v.IsNil() {
			d.out.WriteString("<nil>")
			return
		}
		d.out.WriteByte('[')
		for i := range v.Len() {
			d.separate(i)
			d.linked(v.Index(i))
		}
		d.out.WriteByte(']')
	case reflect.Map:
		d.entries(v, d.linked, d.linked)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[resource.Quantity]() {
			d.quantity(v)
			return
		}
		d.out.WriteByte('{')
		for i := range v.NumField() {
			d.separate(i)
			f := v.Type().Field(i)
			d.out.WriteString(f.Name + ":(" + f.Type.String() + ")")
			value := v.Field(i)
			switch {
			case value.Kind() == reflect.Pointer && value.IsNil():
				d.out.WriteString("<nil>")
			case value.Kind() == reflect.Pointer:
				d.linked(value.Elem())
			default:
				d.linked(value)
			}
		}
		d.out.WriteByte('}')
	default:
		panic(fmt.Sprintf("staticuid: a pod has a value of type %v", v.Type()))
	}
}

// entries writes a map whose keys are strings.
func (d dumper) entries(v reflect.Value, key, elem func(reflect.Value)) {
	if !v.IsValid() || v.IsNil() {
		d.out.WriteString("<nil>")
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	d.out.WriteString("map[")
	for i, k := range keys {
		d.separate(i)
		key(k)
		d.out.WriteByte(':')
		elem(v.MapIndex(k))
	}
	d.out.WriteByte(']')
}

// separate writes the space before each element but the first.
func (d dumper) separate(i int) {
	if i > 0 {
		d.out.WriteByte(' ')
	}
}
