package unixgrpc

import "encoding/binary"

// Types and a flag of HTTP/2 frames (RFC 9113, section 6).
const (
	frameData      = 0
	frameHeaders   = 1
	frameRSTStream = 3

	flagEndStream = 1
)

// A frame is the header of an HTTP/2 frame.
type frame struct {
	length     int // of its payload, in bytes
	kind, flag byte
	stream     uint32
}

// A frames reads frame headers from a direction of a connection. The zero value begins with a frame.
type frames struct {
	skip int // bytes before the next header
	head [9]byte
	n    int // bytes of head
}

// scan calls f for each frame whose header ends within b, which follows the bytes of the
// previous call.
func (s *frames) scan(b []byte, f func(frame)) {
	for len(b) > 0 {
		if s.skip > 0 {
			n := min(s.skip, len(b))
			s.skip -= n
			b = b[n:]
			continue
		}
		n := copy(s.head[s.n:], b)
		s.n += n
		b = b[n:]
		if s.n < len(s.head) {
			return
		}
		s.n = 0
		s.skip = int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2])
		f(frame{
			length: s.skip, kind: s.head[3], flag: s.head[4],
			stream: binary.BigEndian.Uint32(s.head[5:]) &^ (1 << 31),
		})
	}
}
