"""A TCP proxy in a separate process that is slow, or never answers: arguments kind, port, url, seconds."""

import asyncio
import sys
from urllib.parse import urlsplit


async def main() -> None:
    """Serve until killed."""
    kind, port, url, seconds = sys.argv[1], int(sys.argv[2]), urlsplit(sys.argv[3]), float(sys.argv[4])

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
        while data := await reader.read(1 << 20):
            await asyncio.sleep(delay)
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if kind == "hanging":
            while await reader.read(1 << 20):
                pass
            writer.close()
            return
        up_reader, up_writer = await asyncio.open_connection(url.hostname, url.port)
        await asyncio.gather(pass_on(reader, up_writer, 0), pass_on(up_reader, writer, seconds))

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
