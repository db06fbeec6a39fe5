package replay

import (
	"reflect"

	"github.com/kubeparts/kubeparts/sim/record"
)

// sizeOf returns about the memory of a frame, which may be hundreds of times that of its text: an
// empty object becomes a struct.
func sizeOf(f record.Frame) int {
	if f.Call != nil && f.Call.Same != 0 { // shares the messages of an earlier frame
		call := *f.Call
		call.Request, call.Answer = nil, nil
		f.Call = &call
	}
	return int(reflect.TypeFor[record.Frame]().Size()) + memoryBehind(reflect.ValueOf(f))
}

// memoryBehind returns the memory that a value refers to, without the value itself. Decoded values have
// no cycles.
func memoryBehind(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			n = int(v.Elem().Type().Size()) + memoryBehind(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		if !flat(v.Type().Elem()) {
			for i := range v.Len() {
				n += memoryBehind(v.Index(i))
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			n += 2*int(it.Key().Type().Size()+it.Value().Type().Size()) + memoryBehind(it.Key()) + memoryBehind(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += memoryBehind(v.Field(i))
		}
	}
	return n
}

// flat reports whether values of a type refer to nothing.
func flat(t reflect.Type) bool { return t.Kind() <= reflect.Complex128 }
