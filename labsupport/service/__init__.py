"""The assistant as a service: submit a question, then follow the answer as a stream.

access → limits → conversations → assistant → remembering → stream → headers → app → web_server → server. The pipeline
does the work; nothing of it is done again here.
"""
