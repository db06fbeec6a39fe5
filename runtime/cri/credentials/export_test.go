package credentials

// CheckResponse parses a response of a v1 plugin.
func CheckResponse(data []byte) error {
	_, err := parseResponse(data, pluginV1)
	return err
}
