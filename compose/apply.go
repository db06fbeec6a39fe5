package compose

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// An Adjustment changes the configuration of one part of an assembly before the part is constructed.
// Assemblies, such as agent and kube/kubelet, have a list of them. [Adjust] makes one of a function.
type Adjustment interface {
	// Config returns the type of the configuration that Change changes, such as podworker.Config.
	Config() reflect.Type

	// Change changes the configuration that cfg, a pointer to a Config, points to.
	Change(cfg any) error
}

// Adjust returns the Adjustment that calls change with the configuration of a part. The configuration
// is complete, except that its Hooks are empty: those that change sets are called after the ones that
// were set before. change may set periods and limits, and may replace or wrap what the part uses. If it
// sets a function or an interface to nil, or if change is nil, the constructor of the assembly returns an
// error.
//
//	cfg.Adjust = append(cfg.Adjust, compose.Adjust(func(c *podworker.Config) { c.Parallel = 50 }))
func Adjust[C any](change func(*C)) Adjustment {
	if change == nil {
		return nil
	}
	return adjustment[C](func(c *C) error {
		change(c)
		return nil
	})
}

// TryAdjust is [Adjust] for a function that may fail: the constructor of the assembly returns its error.
func TryAdjust[C any](change func(*C) error) Adjustment {
	if change == nil {
		return nil
	}
	return adjustment[C](change)
}

type adjustment[C any] func(*C) error

func (adjustment[C]) Config() reflect.Type   { return reflect.TypeFor[C]() }
func (a adjustment[C]) Change(cfg any) error { return a(cfg.(*C)) }

// CheckAdjust returns an error that names the first of all that is nil, or that changes a configuration
// which is none of known. The constructors of assemblies call it.
func CheckAdjust(all []Adjustment, known ...reflect.Type) error {
	for i, a := range all {
		if a == nil {
			return fmt.Errorf("Config.Adjust[%d] is nil", i)
		}
		if !slices.Contains(known, a.Config()) {
			return fmt.Errorf("Config.Adjust[%d]: no part has a %s; want one of %v", i, a.Config(), known)
		}
	}
	return nil
}

// Only returns those of all that change one of the configurations: an assembly passes them to another one
// that it contains.
func Only(all []Adjustment, of ...reflect.Type) (some []Adjustment) {
	for _, a := range all {
		if slices.Contains(of, a.Config()) {
			some = append(some, a)
		}
	}
	return some
}

// Apply applies those of all that change a C, in order, to cfg. It clears the Hooks of cfg before each, and
// joins those that it sets to the earlier ones. It returns the error of an Adjustment, or one that names
// the functions and interfaces that it has set to nil. Assemblies call it for each part.
func Apply[C any](all []Adjustment, cfg *C) error {
	for _, a := range all {
		if a.Config() != reflect.TypeFor[C]() {
			continue
		}
		before, after := *cfg, reflect.ValueOf(cfg).Elem()
		clearHooks(after)
		if err := a.Change(cfg); err != nil {
			return fmt.Errorf("Config.Adjust of %T: %w", *cfg, err)
		}
		if removed := restore(reflect.ValueOf(before), after, ""); len(removed) > 0 {
			return fmt.Errorf("Config.Adjust of %T: sets %s to nil", *cfg, strings.Join(removed, ", "))
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
