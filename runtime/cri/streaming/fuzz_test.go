package streaming

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"testing"
)

// FuzzFrames sends a session arbitrary frames and closes the connection: all readers
// return, and a command returns an exit code or an error.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0x80, 3, 0, 2, 0, 0, 0, 4, 0, 0, 0, 1})                         // a SYN_REPLY cut short
	f.Add([]byte{0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 5})             // a reset
	f.Add([]byte{0, 0, 0, 1, 1, 0, 0, 2, '{', '}'})                              // data, the last
	f.Add([]byte{0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0}) // a ping, and an end
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		m, err := newMux(ours, bytes.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := m.open(http.Header{headerStreamType: {"error"}}, true); err == nil {
			text, err := io.ReadAll(s)
			if err != nil {
				t.Fatal(err)
			}
			if code, err := parseStatus(text); err != nil && code != 0 {
				t.Fatalf("both a code %d and %v", code, err)
			}
		}
		<-m.ended
		theirs.Close()
	})
}
