package compose

import (
	"fmt"
	"reflect"
	"strings"
)

// Apply calls the field name of each of all, in order, with cfg, the configuration of a part:
// an optional func(*C) or func(*C) error of the struct A, such as agent.Adjust. A function
// gets cfg with empty Hooks, and those that it sets are joined to the earlier ones. Apply
// returns the error of a function, or one that names the functions and interfaces that a
// function has set to nil. It panics if A has no such field.
func Apply[A, C any](all []A, name string, cfg *C) error {
	for _, a := range all {
		f := reflect.ValueOf(a).FieldByName(name)
		if f.IsNil() {
			continue
		}
		before, after := *cfg, reflect.ValueOf(cfg)
		clearHooks(after.Elem())
		if out := f.Call([]reflect.Value{after}); len(out) > 0 && !out[0].IsNil() {
			return fmt.Errorf("Config.Adjust.%s: %w", name, out[0].Interface().(error))
		}
		if removed := restore(reflect.ValueOf(before), after.Elem(), ""); len(removed) > 0 {
			return fmt.Errorf("Config.Adjust.%s: sets %s to nil", name, strings.Join(removed, ", "))
		}
	}
	return nil
}

func clearHooks(v reflect.Value) {
	for i := range v.NumField() {
		switch field := v.Field(i); {
		case !v.Type().Field(i).IsExported() || field.Kind() != reflect.Struct:
		case joinOf(field).IsValid():
			field.SetZero()
		default:
			clearHooks(field)
		}
	}
}

// restore joins the hooks of after to those of before. It returns the functions and
// interfaces that only before has.
func restore(before, after reflect.Value, path string) (removed []string) {
	for i := range after.NumField() {
		field := after.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		was, is := before.Field(i), after.Field(i)
		switch is.Kind() {
		case reflect.Func, reflect.Interface:
			if is.IsNil() && !was.IsNil() {
				removed = append(removed, path+field.Name)
			}
		case reflect.Struct:
			if join := joinOf(was); join.IsValid() {
				is.Set(join.Call([]reflect.Value{is})[0])
			} else {
				removed = append(removed, restore(was, is, path+field.Name+".")...)
			}
		}
	}
	return removed
}

// joinOf returns the method Join of v if v is a Hooks struct.
func joinOf(v reflect.Value) reflect.Value {
	join := v.MethodByName("Join")
	if !join.IsValid() || !join.Type().IsVariadic() || join.Type().NumOut() != 1 || join.Type().Out(0) != v.Type() {
		return reflect.Value{}
	}
	return join
}
