package credentials

import "context"

// Share runs one function for all callers with the same key, as plugins are run.
type Share struct{ fs flights }

func (s *Share) Do(ctx context.Context, key string, run func(context.Context) error) error {
	_, err := s.fs.do(ctx, key, func(ctx context.Context) ([]entry, error) { return nil, run(ctx) })
	return err
}

// CheckResponse reads what a plugin of v1 wrote.
func CheckResponse(data []byte) error {
	_, err := parseResponse(data, pluginV1)
	return err
}
