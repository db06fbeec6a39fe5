package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Bounds of a file.
const (
	maxFile   = 128 << 20 // bytes
	maxValues = 16 << 20
	maxDepth  = 100
)

// A decoder reads values of MessagePack. After the first error, which is in err, all values are
// zero and all containers are empty.
type decoder struct {
	data   []byte
	at     int // offset
	values int
	depth  int
	err    error
}

// fail sets the error, unless there is one.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("offset %d: %w", d.at, fmt.Errorf(format, args...))
	}
}

var errShort = errors.New("file is truncated")

// take returns the next n bytes.
func (d *decoder) take(n uint64) []byte {
	if d.err == nil && n > uint64(len(d.data)-d.at) {
		d.fail("%w", errShort)
	}
	if d.err != nil {
		return nil
	}
	d.at += int(n)
	return d.data[d.at-int(n) : d.at]
}

// number returns the next n bytes, at most 8, as a big-endian number.
func (d *decoder) number(n int) uint64 {
	var b [8]byte
	copy(b[8-n:], d.take(uint64(n)))
	return binary.BigEndian.Uint64(b[:])
}

// A kind is a type of values.
type kind int

const (
	isNil kind = iota
	isBool
	isInt
	isFloat
	isString
	isArray
	isMap
)

// A head is the begin of a value: a scalar, or the size of a string, an array or a map.
type head struct {
	kind   kind
	scalar any
	size   uint64
}

// head reads the begin of a value.
func (d *decoder) head() (h head) {
	if d.values++; d.values > maxValues {
		d.fail("more than %d values", maxValues)
	}
	b := byte(d.number(1))
	if d.err != nil {
		return head{}
	}
	switch {
	case b <= 0x7f:
		return head{isInt, int64(b), 0}
	case b <= 0x8f:
		return head{isMap, nil, uint64(b & 0xf)}
	case b <= 0x9f:
		return head{isArray, nil, uint64(b & 0xf)}
	case b <= 0xbf:
		return head{isString, nil, uint64(b & 0x1f)}
	case b >= 0xe0:
		return head{isInt, int64(int8(b)), 0}
	}
	switch b {
	case 0xc0:
		return head{isNil, nil, 0}
	case 0xc2, 0xc3:
		return head{isBool, b == 0xc3, 0}
	case 0xca:
		return d.float(float64(math.Float32frombits(uint32(d.number(4)))))
	case 0xcb:
		return d.float(math.Float64frombits(d.number(8)))
	case 0xcc, 0xcd, 0xce, 0xcf:
		n := d.number(1 << (b - 0xcc))
		if n > math.MaxInt64 {
			return head{isInt, n, 0} // a hash of SimKube
		}
		return head{isInt, int64(n), 0}
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (b - 0xd0)
		shift := 64 - 8*size
		return head{isInt, int64(d.number(size)<<shift) >> shift, 0}
	case 0xd9, 0xda, 0xdb:
		return head{isString, nil, d.number(1 << (b - 0xd9))}
	case 0xdc, 0xdd:
		return head{isArray, nil, d.number(2 << (b - 0xdc))}
	case 0xde, 0xdf:
		return head{isMap, nil, d.number(2 << (b - 0xde))}
	}
	d.at--
	d.fail("type %#x has no counterpart in JSON", b)
	return head{}
}

func (d *decoder) float(f float64) head {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.fail("%v has no counterpart in JSON", f)
	}
	return head{isFloat, f, 0}
}

// want reads the begin of a value of a kind.
func (d *decoder) want(k kind, name string) head {
	at := d.at
	h := d.head()
	if d.err == nil && h.kind != k {
		d.at = at
		d.fail("value is no %s", name)
	}
	if d.err != nil {
		return head{}
	}
	return h
}

// text reads a string.
func (d *decoder) text() string { return d.textOf(d.want(isString, "string").size) }

func (d *decoder) textOf(size uint64) string {
	b := d.take(size)
	if !utf8.Valid(b) {
		d.fail("string is not UTF-8")
		return ""
	}
	return string(b)
}

// integer reads a number that fits into 64 bits with a sign.
func (d *decoder) integer() int64 {
	n, ok := d.want(isInt, "integer").scalar.(int64)
	if !ok {
		d.fail("value is no integer of 64 bits")
	}
	return n
}

// items calls each for each item of an array or a map that has been begun, until an error.
func (d *decoder) items(n uint64, each func()) {
	if d.depth++; d.depth > maxDepth {
		d.fail("values are nested more than %d deep", maxDepth)
	}
	for ; n > 0 && d.err == nil; n-- { // an item has at least a byte: n is bounded by the file
		each()
	}
	d.depth--
}

// array calls each for each item of an array.
func (d *decoder) array(each func()) { d.items(d.want(isArray, "array").size, each) }

// fields calls each with each key of a map with strings as keys; each must read the value.
func (d *decoder) fields(each func(key string)) {
	d.items(d.want(isMap, "map").size, func() { each(d.text()) })
}

// value reads a value as encoding/json does, but integers as int64.
func (d *decoder) value() any {
	h := d.head()
	switch h.kind {
	case isString:
		return d.textOf(h.size)
	case isArray:
		out := []any{}
		d.items(h.size, func() { out = append(out, d.value()) })
		return out
	case isMap:
		return d.objectOf(h.size)
	case isInt:
		if _, ok := h.scalar.(uint64); ok {
			d.fail("integer exceeds 64 bits with a sign")
		}
	}
	return h.scalar
}

// object reads a map with strings as keys.
func (d *decoder) object() map[string]any { return d.objectOf(d.want(isMap, "map").size) }

func (d *decoder) objectOf(size uint64) map[string]any {
	out := map[string]any{}
	d.items(size, func() {
		key := d.text()
		if _, ok := out[key]; ok {
			d.fail("key %.80q occurs twice", key)
		}
		out[key] = d.value()
	})
	return out
}

// skip reads a value whose map keys may have any type.
func (d *decoder) skip() {
	switch h := d.head(); h.kind {
	case isString:
		d.take(h.size)
	case isArray:
		d.items(h.size, d.skip)
	case isMap:
		d.items(h.size, func() { d.skip(); d.skip() })
	}
}
