package streaming

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/moby/spdystream/spdy"
)

// A mux is the client side of an SPDY/3.1 connection. One goroutine reads frames and
// passes them to their streams. Only the codec is a library's, because all calls must
// return as soon as the connection is closed, whatever the server sends.
type mux struct {
	net     net.Conn
	framer  *spdy.Framer
	closing chan struct{} // closed by close
	ended   chan struct{} // closed when read has returned
	once    sync.Once

	writing sync.Mutex // guards the framer's writer; held for one frame

	mu      sync.Mutex // guards the fields below
	next    spdy.StreamId
	streams map[spdy.StreamId]*stream
	err     error // the error that ended reading
}

// A stream is a stream that the client has opened.
type stream struct {
	m       *mux
	id      spdy.StreamId
	replied chan struct{} // closed when the server has accepted or rejected it
	data    chan []byte   // closed at the end; nil if the stream is not read
	unread  []byte
	refused bool // valid after replied is closed
}

// Limits of one frame, in bytes and number of headers.
const maxControl, maxHeaders = 1 << 20, 64

func newMux(conn net.Conn, r io.Reader) (*mux, error) {
	framer, err := spdy.NewFramerWithOptions(conn, r,
		spdy.WithMaxControlFramePayloadSize(maxControl), spdy.WithMaxHeaderFieldSize(maxControl), spdy.WithMaxHeaderCount(maxHeaders))
	if err != nil {
		return nil, err
	}
	m := &mux{
		net: conn, framer: framer, closing: make(chan struct{}), ended: make(chan struct{}),
		next: 1, streams: map[spdy.StreamId]*stream{},
	}
	go m.read()
	return m, nil
}

// close closes the connection; reads and writes in progress fail.
func (m *mux) close() {
	m.once.Do(func() {
		close(m.closing)
		m.net.Close()
	})
}

// read passes on frames until the connection is closed.
func (m *mux) read() {
	defer close(m.ended)
	for {
		frame, err := m.framer.ReadFrame()
		if err == nil {
			err = m.handle(frame)
		}
		if err == nil {
			continue
		}
		m.close()
		m.mu.Lock()
		m.err = err
		streams := m.streams
		m.streams = nil
		m.mu.Unlock()
		for _, s := range streams {
			s.finish()
		}
		return
	}
}

// handle processes a frame. Frames for closed streams and those without meaning to a
// client are dropped.
func (m *mux) handle(frame spdy.Frame) error {
	switch f := frame.(type) {
	case *spdy.SynReplyFrame:
		if s := m.find(f.StreamId); s != nil {
			s.reply(false)
			if f.CFHeader.Flags&spdy.ControlFlagFin != 0 {
				m.end(s)
			}
		}
	case *spdy.DataFrame:
		s := m.find(f.StreamId)
		if s == nil {
			return nil
		}
		select {
		case <-s.replied:
		default:
			return errors.New("data in a stream that the server has not accepted")
		}
		if len(f.Data) > 0 && s.data != nil {
			select {
			case s.data <- f.Data:
			case <-m.closing:
				return net.ErrClosed
			}
		}
		if f.Flags&spdy.DataFlagFin != 0 {
			m.end(s)
		}
	case *spdy.RstStreamFrame:
		if s := m.find(f.StreamId); s != nil {
			s.reply(true)
			m.end(s)
		}
	case *spdy.PingFrame:
		if f.Id%2 == 0 { // opened by the server
			return m.write(f)
		}
	}
	return nil
}

func (m *mux) find(id spdy.StreamId) *stream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.streams[id]
}

// end marks the end of the data of a stream.
func (m *mux) end(s *stream) {
	m.mu.Lock()
	delete(m.streams, s.id)
	m.mu.Unlock()
	s.finish()
}

func (m *mux) write(frame spdy.Frame) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.framer.WriteFrame(frame)
}

// open opens a stream and waits until the server has accepted it, because servers
// discard earlier data. If the stream is not read, its data is dropped.
func (m *mux) open(headers http.Header, reads bool) (*stream, error) {
	s := &stream{m: m, replied: make(chan struct{})}
	if reads {
		s.data = make(chan []byte)
	}
	m.mu.Lock()
	if m.streams == nil {
		err := m.err
		m.mu.Unlock()
		return nil, lost(err)
	}
	s.id = m.next
	m.next += 2
	m.streams[s.id] = s
	m.mu.Unlock()
	if err := m.write(&spdy.SynStreamFrame{StreamId: s.id, Headers: headers}); err != nil {
		return nil, lost(err)
	}
	<-s.replied // closed at the latest with the connection
	if s.refused {
		return nil, fmt.Errorf("streaming server rejected the stream %q", headers.Get(headerStreamType))
	}
	return s, nil
}

// lost returns the error of a lost connection.
func lost(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("connection to streaming server: %w", err)
}

// reply records the server's response; only the first one counts. Like finish it is
// called on the reading goroutine.
func (s *stream) reply(refused bool) {
	select {
	case <-s.replied:
	default:
		s.refused = refused
		close(s.replied)
	}
}

func (s *stream) finish() {
	s.reply(true)
	if s.data != nil {
		close(s.data)
	}
}

// Read returns data from the server, and io.EOF if the server closed or reset the
// stream or the connection: servers end a session in each of these ways, and report
// the exit in a stream of its own.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.unread) == 0 {
		data, ok := <-s.data
		if !ok {
			return 0, io.EOF
		}
		s.unread = data
	}
	n := copy(p, s.unread)
	s.unread = s.unread[n:]
	return n, nil
}

// maxFrame is the maximum number of bytes sent in a frame, so that streams alternate.
const maxFrame = 32 << 10

func (s *stream) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:min(n+maxFrame, len(p))]
		if err = s.m.write(&spdy.DataFrame{StreamId: s.id, Data: part}); err == nil {
			n += len(part)
		}
	}
	return n, err
}

// closeWrite sends the end of the stream to the server.
func (s *stream) closeWrite() error {
	return s.m.write(&spdy.DataFrame{StreamId: s.id, Flags: spdy.DataFlagFin})
}
